// A model of one's own, without PyTorch: a network over sequences of samples, written with the library's layers. Its
// training step is recorded and written to the file named on the command line:
//
//   model = Sequential(Conv1d(4, 8, 3, padding=1), GELU(), Conv1d(8, 8, 3, stride=2, groups=2), GELU(), Flatten(),
//                      Linear(8 * 7, 5)); loss = cross_entropy(model(x), classes); AdamW, 2 sequences of 16 samples
//
// A Python test compares the step with the one that PyTorch runs. Then, for example:
//
//   build/examples/model_in_cpp sequence.step.jsonl && build/tidemark memory sequence.step.jsonl

#include <cstdio>
#include <exception>

#include "tidemark/nn/functional.h"
#include "tidemark/nn/layers.h"
#include "tidemark/nn/training.h"
#include "tidemark/ops/aten.h"
#include "tidemark/step/write_step.h"

namespace nn = tidemark::nn;
namespace ops = tidemark::ops;

namespace {

// nn.Flatten of a contiguous tensor.
class Flatten : public nn::Module {
 public:
  Flatten(nn::Net& net, tidemark::step::ModuleId parent, std::string name)
      : Module(net, parent, std::move(name), "Flatten") {}
  nn::Tensor operator()(const nn::Tensor& x) const {
    return called({&x}, [&] { return ops::view(rt(), x, nn::Dims{x.size(0), x.size(1) * x.size(2)}); });
  }
};

class Network : public nn::Module {
 public:
  explicit Network(nn::Net& net)
      : Module(net, {}, "", "Sequential"),
        wide_(net, id(), "0", 4, 8, {.kernel = 3, .padding = 1}),
        first_gelu_(net, id(), "1", "GELU", nn::exact_gelu),
        grouped_(net, id(), "2", 8, 8, {.kernel = 3, .stride = 2, .groups = 2}),
        second_gelu_(net, id(), "3", "GELU", nn::exact_gelu),
        flatten_(net, id(), "4"),
        head_(net, id(), "5", 8 * 7, 5, true) {}

  nn::Tensor operator()(const nn::Tensor& samples) const {
    return called({&samples}, [&] {
      nn::Tensor x = wide_(samples);
      x = first_gelu_(x);
      x = grouped_(x);
      x = second_gelu_(x);
      x = flatten_(x);
      return head_(x);
    });
  }

 private:
  nn::Conv1d wide_;
  nn::Activation first_gelu_;
  nn::Conv1d grouped_;
  nn::Activation second_gelu_;
  Flatten flatten_;
  nn::Linear head_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s OUTPUT.step.jsonl\n", argv[0]);
    return 2;
  }
  try {
    nn::Runtime rt(nn::Target::kCpu);
    nn::Net net(rt, nn::DType::kFloat32);
    const Network model(net);
    const nn::Tensor samples = rt.leaf(nn::DType::kFloat32, {2, 4, 16}, false);
    const nn::Tensor classes = rt.leaf(nn::DType::kInt64, {2}, false);
    const tidemark::step::Step step =
        nn::record_step(net, {samples, classes}, [&] { return nn::cross_entropy(rt, model(samples), classes); }, {});
    tidemark::step::write_step(step, argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
