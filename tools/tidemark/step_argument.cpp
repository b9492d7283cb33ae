#include "step_argument.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "commands.h"
#include "tidemark/base/error.h"
#include "tidemark/step/read_step.h"
#include "tidemark/zoo/config_file.h"

namespace tidemark::cli {

namespace {

[[noreturn]] void refuse(const std::string& argument, std::string problem, std::string remedy) {
  throw Error({.kind = ErrorKind::kInput,
               .place = argument,
               .problem = std::move(problem),
               .expected = "a step file, plain or .zst, the name of a built-in model, or a Hugging Face config.json",
               .got = {},
               .remedy = std::move(remedy)});
}

[[noreturn]] void refuse_name(const std::string& argument) {
  const std::string near = zoo::nearest_model(argument);
  refuse(argument, "there is no such file or model",
         near.empty() ? "check the path, or see tidemark models for names" : fmt::format("did you mean {}?", near));
}

// Whether a file holds a config: JSON with a model_type, which no step has in its first line. A pipe can be read only
// once, so it is taken for a step.
bool holds_config(const std::string& path) {
  constexpr std::size_t kEnough = std::size_t{1} << 20;
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string start(kEnough, '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<std::size_t>(file.gcount()));
  const std::size_t first = start.find_first_not_of(" \t\r\n");
  if (first == start.npos || start[first] != '{' || start.compare(first, 11, "{\"tidemark\"") == 0) return false;
  return path.ends_with(".json") || start.find("\"model_type\"") != start.npos;
}

// Whether a file says of itself that it is a step, or is compressed, which no config is.
bool holds_step(const std::string& path) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string start(12, '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  return start.starts_with("{\"tidemark\"") || start.starts_with("\x28\xB5\x2F\xFD");
}

// Whether the argument is something that can be read as a file.
bool is_file(const std::string& argument) {
  if (argument.empty()) refuse("STEP", "the name is empty", "check the path, or see tidemark models for names");
  std::error_code code;  // what cannot be looked at is left to the reader, which says why
  const std::filesystem::file_status status = std::filesystem::status(argument, code);
  if (status.type() == std::filesystem::file_type::directory)
    refuse(argument, "this is a folder", "check the path, or see tidemark models for names");
  return status.type() != std::filesystem::file_type::not_found;
}

nn::DType dtype_named(const std::string& name) {
  if (name == "bfloat16") return nn::DType::kBFloat16;
  return name == "float16" ? nn::DType::kFloat16 : nn::DType::kFloat32;
}

nn::OptimizerKind optimizer_named(const std::string& name) {
  if (name == "none") return nn::OptimizerKind::kNone;
  if (name == "sgd") return nn::OptimizerKind::kSgd;
  if (name == "momentum") return nn::OptimizerKind::kMomentum;
  return name == "adam" ? nn::OptimizerKind::kAdam : nn::OptimizerKind::kAdamW;
}

nn::AttentionKernel attention_named(const std::string& name) {
  if (name == "math") return nn::AttentionKernel::kMath;
  if (name == "flash") return nn::AttentionKernel::kFlash;
  return name == "efficient" ? nn::AttentionKernel::kEfficient : nn::AttentionKernel::kAuto;
}

std::vector<std::string> words(const std::vector<std::string_view>& list) { return {list.begin(), list.end()}; }

nn::OptimizerForm form_named(const std::string& name) {
  if (name == "foreach") return nn::OptimizerForm::kForeach;
  if (name == "fused") return nn::OptimizerForm::kFused;
  return name == "for-loop" ? nn::OptimizerForm::kForLoop : nn::OptimizerForm::kAuto;
}

}  // namespace

void add_native_options(CLI::App& app, NativeOptions& options) {
  add_count(app, "--batch", options.batch, "sequences or images in a step");
  add_count(app, "--seq", options.sequence, "tokens of a sequence; 0: the model's positions, at most 8192");
  add_count(app, "--image", options.image, "pixels of a side; 0: the model's own");
  app.add_option("--dtype", options.dtype, "type of parameters: float32 (default), bfloat16 or float16")
      ->type_name("TYPE")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}));
  app.add_option("--precision", options.precision,
                 "fp32 (default), bf16, fp16, with -master a float32 copy, or autocast-bf16")
      ->type_name("WORD")
      ->check(CLI::IsMember(words(zoo::precisions())))
      ->excludes("--dtype");
  app.add_option("--attention", options.attention, "kernel of attention: auto (default), math, flash or efficient")
      ->type_name("KERNEL")
      ->check(CLI::IsMember({"auto", "math", "flash", "efficient"}));
  add_count(app, "--micro-batches", options.micro_batches, "forward and backward that often, gradients added up");
  app.add_option("--clip-norm", options.clip_norm, "gradients scaled down to this norm; 0: not")->type_name("NORM");
  app.add_option("--optimizer", options.optimizer, "adamw (default), adam, sgd, momentum or none")
      ->type_name("NAME")
      ->check(CLI::IsMember({"adamw", "adam", "sgd", "momentum", "none"}));
  app.add_option("--form", options.form, "for-loop (default), foreach (default on CUDA) or fused")
      ->type_name("FORM")
      ->check(CLI::IsMember({"for-loop", "foreach", "fused"}));
  app.add_option("--target", options.target, "whose kernels: cpu, or cuda (default with a GPU)")
      ->type_name("DEVICE")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  for (const char* name : {"--batch", "--seq", "--image", "--dtype", "--precision", "--attention", "--micro-batches",
                           "--clip-norm", "--optimizer", "--form", "--target"})
    app.get_option(name)->each([&options, name](const std::string&) { options.given.emplace_back(name); });
}

void follow_device(NativeOptions& options, device::DeviceKind kind) {
  if (options.target.empty() && kind != device::DeviceKind::kCpu) options.target = "cuda";
}

zoo::StepOptions step_options(const NativeOptions& options) {
  zoo::StepOptions result;
  result.batch = static_cast<std::int64_t>(options.batch);
  result.sequence = static_cast<std::int64_t>(options.sequence);
  result.image = static_cast<std::int64_t>(options.image);
  result.dtype = dtype_named(options.dtype);
  result.training.optimizer = optimizer_named(options.optimizer);
  result.training.form = form_named(options.form);
  result.training.micro_batches = static_cast<std::int64_t>(options.micro_batches);
  result.training.clip_norm = options.clip_norm;
  if (!options.precision.empty()) zoo::set_precision(result, options.precision);
  result.attention = attention_named(options.attention);
  result.target = options.target == "cuda" ? nn::Target::kCuda : nn::Target::kCpu;
  return result;
}

zoo::Config read_model_argument(const std::string& argument) {
  if (is_file(argument)) {
    if (holds_step(argument))
      throw Error({.kind = ErrorKind::kInput,
                   .place = argument,
                   .problem = "this is a step that was recorded already",
                   .expected = "a built-in model or a Hugging Face config.json",
                   .got = {},
                   .remedy = "see tidemark models for names; tidemark inspect shows a step"});
    return zoo::read_config(argument);
  }
  const zoo::Entry* entry = zoo::find_model(argument);
  if (entry == nullptr) refuse_name(argument);
  return entry->config;
}

step::Step read_step_argument(const std::string& argument, const NativeOptions& options) {
  if (is_file(argument) && !holds_config(argument)) {
    if (options.given.empty()) return step::read_step(argument);
    throw Error({.kind = ErrorKind::kInput,
                 .place = options.given.back(),
                 .problem = fmt::format("the option is for models that are run now, and {} is a step that was recorded",
                                        argument),
                 .expected = {},
                 .got = {},
                 .remedy = "leave it out, or record the step again with it"});
  }
  return zoo::record(read_model_argument(argument), step_options(options));
}

}  // namespace tidemark::cli
