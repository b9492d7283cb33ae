#include "step_argument.h"

#include <filesystem>

#include "tidemark/base/error.h"
#include "tidemark/step/read_step.h"

namespace tidemark::cli {

namespace {

[[noreturn]] void refuse(const std::string& argument, std::string problem) {
  throw Error({.kind = ErrorKind::kInput,
               .place = argument,
               .problem = std::move(problem),
               .expected = "a step file, plain or .zst (not yet: names of models, Hugging Face configs)",
               .got = {},
               .remedy = "check the path, or start with examples/steps/two_layer_mlp.step.jsonl"});
}

}  // namespace

step::Step read_step_argument(const std::string& argument) {
  std::error_code code;  // what cannot be looked at is left to the reader, which says why
  const std::filesystem::file_status status = std::filesystem::status(argument, code);
  if (argument.empty()) refuse("STEP", "the name is empty");
  if (status.type() == std::filesystem::file_type::not_found) refuse(argument, "there is no such file");
  if (status.type() == std::filesystem::file_type::directory) refuse(argument, "this is a folder");
  return step::read_step(argument);
}

}  // namespace tidemark::cli
