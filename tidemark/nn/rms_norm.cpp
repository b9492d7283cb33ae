#include "tidemark/nn/rms_norm.h"

#include "tidemark/nn/functional.h"
#include "tidemark/ops/aten.h"
#include "tidemark/ops/rules.h"

namespace tidemark::nn {

RmsNorm::RmsNorm(Net& net, step::ModuleId parent, std::string name, const std::string& family, std::int64_t width,
                 double eps)
    : Module(net, parent, std::move(name), family + "RMSNorm"),
      eps_(eps),
      is_gemma_(family.starts_with("Gemma")),
      weight_(net.parameter(id(), "weight", {width})) {}

Tensor RmsNorm::gemma(const Tensor& x) const {
  const DType dtype = x.dtype();
  Tensor output;
  {
    const Tensor single = in_type(rt(), x, DType::kFloat32);
    Tensor scale = ops::pow(rt(), single, std::int64_t{2});
    scale = ops::mean(rt(), scale, Dims{-1}, true);
    scale = ops::add(rt(), scale, eps_);
    scale = ops::rsqrt(rt(), scale);
    output = ops::mul(rt(), single, scale);
    scale.reset();
  }
  {
    Tensor factor = in_type(rt(), weight_, DType::kFloat32);
    factor = ops::add(rt(), factor, 1.0);
    Tensor scaled = ops::mul(rt(), output, factor);
    factor.reset();
    output = std::move(scaled);
  }
  if (dtype != DType::kFloat32) {  // as output.type_as(x)
    static const ops::Op op("aten._to_copy.default");
    output =
        op(rt(), {{"self", output}, {"dtype", ops::dtype_word(dtype)}, {"layout", "torch.strided"}, {"device", "cpu"}});
  }
  return output;
}

Tensor RmsNorm::operator()(const Tensor& x) const {
  return called({&x}, [&] {
    if (is_gemma_) return gemma(x);
    Tensor hidden = in_type(rt(), x, DType::kFloat32);
    Tensor variance = ops::pow(rt(), hidden, std::int64_t{2});
    variance = ops::mean(rt(), variance, Dims{-1}, true);
    {
      Tensor scale = ops::add(rt(), variance, eps_);
      scale = ops::rsqrt(rt(), scale);
      Tensor scaled = ops::mul(rt(), hidden, scale);
      scale.reset();
      hidden = std::move(scaled);
    }
    Tensor result = ops::mul(rt(), weight_, in_type(rt(), hidden, x.dtype()));
    ops::drop(hidden, variance);
    return result;
  });
}

}  // namespace tidemark::nn
