// Runs a program of a few ops natively and writes its training step. python/tests/native runs the same programs in
// PyTorch and compares the two:
//
//   op_program PROGRAM.json OUTPUT.step.jsonl
//
//   {"style": "bare",
//    "values": [["a", "float32", [4, 6], true]],              name, element type, sizes, whether it is a parameter
//    "calls": [["aten.clamp.default", {"self": "$a", "min": 0}, ["y"]]]}
//
// A text that starts with $ is the tensor of that name. The sum of the last call's results is the loss; those whose
// name starts with _ are left out.

#include <cstdio>
#include <deque>
#include <exception>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "tidemark/nn/training.h"
#include "tidemark/ops/aten.h"
#include "tidemark/step/dtype.h"
#include "tidemark/step/write_step.h"

namespace nn = tidemark::nn;
namespace ops = tidemark::ops;
using nlohmann::ordered_json;

namespace {

using Values = std::vector<std::pair<std::string, nn::Tensor>>;

class Program : public nn::Module {
 public:
  Program(nn::Net& net, const ordered_json& text) : Module(net, {}, "", "Program"), text_(text) {
    for (const ordered_json& value : text["values"]) {
      const nn::Dims sizes(std::span<const std::int64_t>(value[2].get<std::vector<std::int64_t>>()));
      const auto dtype = *tidemark::step::dtype_from_name(value[1].get<std::string>());
      const bool is_parameter = value[3];
      nn::Tensor made = is_parameter ? net.parameter(id(), value[0], sizes) : net.rt.leaf(dtype, sizes, false);
      (is_parameter ? parameters_ : inputs_).emplace_back(value[0], std::move(made));
    }
  }

  std::vector<nn::Tensor> inputs() const {
    std::vector<nn::Tensor> tensors;
    for (const auto& [name, tensor] : inputs_) tensors.push_back(tensor);
    return tensors;
  }

  nn::Tensor loss() const {
    std::vector<nn::Tensor> results = forward();
    nn::Tensor total;
    for (nn::Tensor& result : results) {
      if (is_inside()) result = ops::sigmoid(rt(), result);
      const nn::Tensor part = ops::sum(rt(), result);
      result.reset();
      total = total ? ops::add(rt(), total, part) : part;
    }
    return total;
  }

 private:
  bool is_inside() const { return text_["style"] == "inside"; }

  std::vector<nn::Tensor> forward() const {
    std::vector<const nn::Tensor*> given;
    for (const auto& [name, tensor] : inputs_) given.push_back(&tensor);
    rt().recorder().enter(id(), given);
    Values values = inputs_;
    for (const auto& [name, tensor] : parameters_)
      values.emplace_back(name, is_inside() ? ops::sin(rt(), tensor) : tensor);
    std::vector<nn::Tensor> results;
    for (const ordered_json& call : text_["calls"]) results = run(call, values);
    for (auto& [name, tensor] : values) tensor.reset();
    std::vector<const nn::Tensor*> outputs;
    for (const nn::Tensor& t : results) outputs.push_back(&t);
    rt().recorder().leave(outputs);
    return results;
  }

  // The results that count for the loss.
  std::vector<nn::Tensor> run(const ordered_json& call, Values& values) const {
    std::deque<std::vector<nn::Tensor>> lists;
    std::deque<nn::Tensor> tensors;
    std::vector<ops::Arg> args;
    for (const auto& [name, value] : call[1].items())
      args.emplace_back(name.c_str(), argument(value, values, tensors, lists));
    std::vector<nn::Tensor> made = ops::run_all(rt(), ops::row(call[0].get<std::string>()), args);
    args.clear();
    lists.clear();
    tensors.clear();
    std::vector<nn::Tensor> counted;
    for (std::size_t i = 0; i < made.size() && i < call[2].size(); ++i) {
      const std::string name = call[2][i];
      if (!name.starts_with('_') && ops::is_floating(made[i].dtype())) counted.push_back(made[i]);
      set(values, name, made[i]);
    }
    return counted;
  }

  static void set(Values& values, const std::string& name, const nn::Tensor& tensor) {
    for (auto& [known, value] : values)
      if (known == name) {
        value = tensor;
        return;
      }
    values.emplace_back(name, tensor);
  }

  static const nn::Tensor& find(const Values& values, const std::string& name) {
    for (const auto& [known, value] : values)
      if (known == name) return value;
    throw std::runtime_error("no value is called " + name);
  }

  static ops::Value argument(const ordered_json& value, const Values& values, std::deque<nn::Tensor>& tensors,
                             std::deque<std::vector<nn::Tensor>>& lists) {
    if (value.is_null()) return ops::None{};
    if (value.is_boolean()) return value.get<bool>();
    if (value.is_number_integer()) return value.get<std::int64_t>();
    if (value.is_number()) return value.get<double>();
    if (value.is_string()) {
      const auto& text = value.get_ref<const std::string&>();
      if (text == "inf") return std::numeric_limits<double>::infinity();
      if (!text.starts_with('$')) return text.c_str();
      tensors.push_back(find(values, text.substr(1)));
      return &tensors.back();
    }
    if (value.empty() || value.front().is_number())
      return nn::Dims(std::span<const std::int64_t>(value.get<std::vector<std::int64_t>>()));
    bool has_none = false;
    std::vector<nn::Tensor>& list = lists.emplace_back();
    for (const ordered_json& item : value) {
      has_none = has_none || item.is_null();
      list.push_back(item.is_null() ? nn::Tensor() : find(values, item.get<std::string>().substr(1)));
    }
    return has_none ? ops::Value(ops::Indices{list}) : ops::Value(std::span<const nn::Tensor>(list));
  }

  const ordered_json& text_;
  Values parameters_;
  Values inputs_;
};

tidemark::step::Step record(const ordered_json& text, std::vector<nn::LeftGradient>& left) {
  nn::Runtime rt(nn::Target::kCpu);
  nn::Net net(rt, nn::DType::kFloat32);
  const Program program(net, text);
  const nn::Training training{.optimizer = nn::OptimizerKind::kSgd, .form = nn::OptimizerForm::kForLoop};
  return nn::record_step(
      net, program.inputs(), [&] { return program.loss(); }, training, left);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s PROGRAM.json OUTPUT.step.jsonl\n", argv[0]);
    return 2;
  }
  try {
    std::ifstream file(argv[1]);
    const ordered_json text = ordered_json::parse(file);
    std::vector<nn::LeftGradient> left;
    record(text, left);  // tells what gradients a step leaves for the next
    tidemark::step::write_step(record(text, left), argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
