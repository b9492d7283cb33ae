#include "tidemark/nn/experts.h"

#include "tidemark/ops/aten.h"

namespace tidemark::nn {

using ops::Op;

Router::Router(Net& net, step::ModuleId parent, const ExpertShape& shape)
    : Module(net, parent, "gate", shape.family + "TopKRouter"),
      chosen_(shape.chosen),
      weight_(net.parameter(id(), "weight", {shape.experts, shape.width})) {}

std::vector<Tensor> Router::operator()(const Tensor& tokens) const {
  static const Op topk("aten.topk.default");
  static const Op div("aten.div_.Tensor");
  return called_for_all({&tokens}, [&]() -> std::vector<Tensor> {
    const Tensor flat = ops::view(rt(), tokens, Dims{-1, tokens.size(-1)});
    Tensor logits = linear(rt(), flat, weight_, {});
    Tensor probabilities = softmax(rt(), logits, -1, DType::kFloat32);
    std::vector<Tensor> best = topk.all(rt(), {{"self", probabilities}, {"k", chosen_}});
    {
      const Tensor sum = ops::sum(rt(), best[0], Dims{-1}, true);
      div.none(rt(), {{"self", best[0]}, {"other", sum}});
    }
    probabilities.reset();
    return {std::move(logits), std::move(best[0]), std::move(best[1])};
  });
}

Experts::Experts(Net& net, step::ModuleId parent, const ExpertShape& shape)
    : Module(net, parent, "experts", shape.family + "Experts"),
      shape_(shape),
      gate_up_proj_(net.parameter(id(), "gate_up_proj", {shape.experts, 2 * shape.inner, shape.width})),
      down_proj_(net.parameter(id(), "down_proj", {shape.experts, shape.width, shape.inner})),
      act_fn_(net, id(), "act_fn", shape.activation_type, shape.activation) {}

Tensor Experts::operator()(const Tensor& tokens, const Tensor& experts, const Tensor& scores) const {
  return called({&tokens, &experts, &scores}, [&] { return forward(tokens, experts, scores); });
}

Tensor Experts::forward(const Tensor& tokens, const Tensor& experts, const Tensor& scores) const {
  static const Op sort("aten.sort.default");
  static const Op floor_divide("aten.floor_divide.default");
  static const Op index("aten.index.Tensor");
  static const Op histc("aten.histc.default");
  static const Op cumsum("aten.cumsum.default");
  static const Op grouped_mm("aten._grouped_mm.default");
  static const Op empty_like("aten.empty_like.default");
  static const Op arange("aten.arange.default");
  static const Op index_put("aten.index_put_.default");
  const auto pick = [&](const Tensor& from, const Tensor& positions) {
    const std::vector<Tensor> indices = {positions};
    return index(rt(), {{"self", from}, {"indices", indices}});
  };
  const std::int64_t count = experts.size(0) * experts.size(1);
  const Tensor weights = ops::view(rt(), scores, Dims{-1});
  const Tensor ids = ops::view(rt(), experts, Dims{-1});
  std::vector<Tensor> sorted = sort.all(rt(), {{"self", ids}});
  Tensor& order = sorted[1];
  Tensor selected;
  {
    const Tensor rows = floor_divide(rt(), {{"self", order}, {"other", shape_.chosen}});
    selected = pick(tokens, rows);
  }
  Tensor weight = pick(weights, order);
  Tensor numbers = ops::to_dtype(rt(), sorted[0], DType::kFloat32);
  // Arguments that are the defaults (of a single expert) are not passed on.
  Tensor histogram =
      shape_.experts == 1
          ? histc(rt(), {{"self", numbers}, {"bins", shape_.experts}})
          : histc(rt(), {{"self", numbers}, {"bins", shape_.experts}, {"min", 0}, {"max", shape_.experts - 1}});
  Tensor offsets = cumsum(rt(), {{"self", histogram}, {"dim", 0}, {"dtype", "torch.int32"}});
  Tensor projected;
  {
    Tensor inner;
    {
      const Tensor both = grouped_mm(
          rt(), {{"self", selected}, {"mat2", ops::transpose(rt(), gate_up_proj_, -2, -1)}, {"offs", offsets}});
      std::vector<Tensor> halves = ops::split(rt(), both, shape_.inner, -1);
      Tensor gate = act_fn_(halves[0]);
      inner = ops::mul(rt(), gate, halves[1]);
      gate.reset();
    }
    projected =
        grouped_mm(rt(), {{"self", inner}, {"mat2", ops::transpose(rt(), down_proj_, -2, -1)}, {"offs", offsets}});
  }
  Tensor weighted = ops::mul(rt(), projected, ops::unsqueeze(rt(), weight, -1));
  Tensor inverse = empty_like(rt(), {{"self", order}, {"pin_memory", false}});
  {
    const Tensor numbers_again = arange(rt(), {{"end", count}, {"device", "cpu"}, {"pin_memory", false}});
    const std::vector<Tensor> indices = {order};
    index_put.none(rt(), {{"self", inverse}, {"indices", indices}, {"values", numbers_again}});
  }
  weighted = pick(weighted, inverse);
  Tensor sum =
      ops::sum(rt(), ops::view(rt(), weighted, Dims{experts.size(0), experts.size(1), shape_.width}), Dims{1}, false);
  Tensor result = sum.dtype() == tokens.dtype() ? sum : ops::to_dtype(rt(), sum, tokens.dtype());
  ops::drop(sorted[0], order, selected, weight, numbers, histogram, offsets, projected, weighted, inverse, sum);
  return result;
}

MixtureOfExperts::MixtureOfExperts(Net& net, step::ModuleId parent, const ExpertShape& shape)
    : Module(net, parent, "mlp", shape.family + "SparseMoeBlock"),
      gate_(net, id(), shape),
      experts_(net, id(), shape) {}

Tensor MixtureOfExperts::operator()(const Tensor& x) const {
  return called({&x}, [&] {
    const Tensor tokens = ops::view(rt(), x, Dims{-1, x.size(-1)});
    std::vector<Tensor> routed = gate_(tokens);
    Tensor y = experts_(tokens, routed[2], routed[1]);
    y = ops::view(rt(), y, x.sizes());
    ops::drop(routed[0], routed[1], routed[2]);
    return y;
  });
}

}  // namespace tidemark::nn
