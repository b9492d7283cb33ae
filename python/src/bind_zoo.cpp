#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "bindings.h"
#include "tidemark/base/error.h"
#include "tidemark/zoo/config_file.h"
#include "tidemark/zoo/record.h"
#include "words.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace tidemark::python {

namespace {

constexpr Word<nn::DType> kDTypes[] = {
    {"float32", nn::DType::kFloat32}, {"bfloat16", nn::DType::kBFloat16}, {"float16", nn::DType::kFloat16}};
constexpr Word<nn::OptimizerKind> kOptimizers[] = {{"adamw", nn::OptimizerKind::kAdamW},
                                                   {"adam", nn::OptimizerKind::kAdam},
                                                   {"sgd", nn::OptimizerKind::kSgd},
                                                   {"momentum", nn::OptimizerKind::kMomentum},
                                                   {"none", nn::OptimizerKind::kNone}};
constexpr Word<nn::OptimizerForm> kForms[] = {{"auto", nn::OptimizerForm::kAuto},
                                              {"for-loop", nn::OptimizerForm::kForLoop},
                                              {"foreach", nn::OptimizerForm::kForeach},
                                              {"fused", nn::OptimizerForm::kFused}};
constexpr Word<nn::AttentionKernel> kKernels[] = {{"auto", nn::AttentionKernel::kAuto},
                                                  {"math", nn::AttentionKernel::kMath},
                                                  {"flash", nn::AttentionKernel::kFlash},
                                                  {"efficient", nn::AttentionKernel::kEfficient}};
constexpr Word<nn::Target> kTargets[] = {{"cpu", nn::Target::kCpu}, {"cuda", nn::Target::kCuda}};

zoo::Config config_of(const std::string& model, bool is_text, bool is_file) {
  if (is_file) return zoo::read_config(model);
  if (is_text) return zoo::parse_config(model, "config");
  if (const zoo::Entry* entry = zoo::find_model(model)) return entry->config;
  const std::string near = zoo::nearest_model(model);
  throw Error({.kind = ErrorKind::kInput,
               .place = model,
               .problem = "there is no such built-in model",
               .expected = {},
               .got = {},
               .remedy = near.empty() ? "tidemark.models() has the names" : "did you mean " + near + "?"});
}

nb::list models() {
  nb::list list;
  for (const zoo::Entry& entry : zoo::models()) {
    const zoo::ModelFacts facts = zoo::facts_of(entry.config);
    nb::dict row;
    row["name"] = entry.name;
    row["parameters"] = facts.parameters;
    row["step_parameters"] = facts.step_parameters;
    row["layers"] = facts.layers;
    row["head"] = facts.head;
    row["source"] = entry.source;
    list.append(row);
  }
  return list;
}

}  // namespace

void bind_zoo(nb::module_& m) {
  m.def("models", &models, nb::sig("def models() -> list[dict[str, typing.Any]]"),
        "The built-in models: name, parameters, layers, what it is trained for, where its config is published.");
  m.def(
      "record_native",
      [](const std::string& model, bool is_config, std::int64_t batch, std::int64_t sequence, std::int64_t image,
         std::string_view dtype, std::string_view optimizer, std::string_view form, std::string_view target,
         bool input_needs_grad, std::string_view precision, std::string_view attention, std::int64_t micro_batches,
         double clip_norm, bool is_file) {
        zoo::StepOptions options;
        options.batch = batch;
        options.sequence = sequence;
        options.image = image;
        options.dtype = from_word(dtype, kDTypes, "dtype");
        if (!precision.empty()) zoo::set_precision(options, precision);
        options.training.optimizer = from_word(optimizer, kOptimizers, "optimizer");
        options.training.form = from_word(form, kForms, "form");
        options.training.micro_batches = micro_batches;
        options.training.clip_norm = clip_norm;
        options.attention = from_word(attention, kKernels, "attention");
        options.target = from_word(target, kTargets, "target");
        options.input_needs_grad = input_needs_grad;
        return zoo::record(config_of(model, is_config, is_file), options);
      },
      "model"_a, nb::kw_only(), "is_config"_a = false, "batch"_a = 1, "sequence"_a = 0, "image"_a = 0,
      "dtype"_a = "float32", "optimizer"_a = "adamw", "form"_a = "auto", "target"_a = "cpu",
      "input_needs_grad"_a = false, "precision"_a = "", "attention"_a = "auto", "micro_batches"_a = 1,
      "clip_norm"_a = 0.0, "is_file"_a = false,
      "A step of a built-in model, or of the text of a Hugging Face config.json; `tidemark.native` is the friendly "
      "form.");
}

}  // namespace tidemark::python
