// tidemark validate STEP...: says of each file whether it is a step, and where it is not.

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "commands.h"
#include "step_argument.h"
#include "text_layout.h"
#include "tidemark/step/dump.h"
#include "tidemark/step/fingerprint.h"

namespace tidemark::cli {

namespace {

using Files = std::vector<std::string>;

struct Verdict {
  std::string file;
  std::int64_t ops = 0;
  std::string fingerprint;
  std::optional<Error> error;  // of a file that is not valid
};

// A refused file is a result here, and does not stop the next one.
Verdict judge(const std::string& file) {
  Verdict verdict;
  verdict.file = file;
  try {
    const step::Step step = read_step_argument(file);
    verdict.ops = static_cast<std::int64_t>(step.tables().ops.size());
    verdict.fingerprint = step::fingerprint(step).hex();
  } catch (const Error& error) {
    verdict.error = error;
  }
  return verdict;
}

void show(const Verdict& verdict, const Console& console) {
  const std::string file = step::printable(verdict.file);
  if (verdict.error) {
    console.print(fmt::format("{}: not a valid step\n", file));
    console.complain(*verdict.error);
  } else {
    console.print(
        fmt::format("{}: valid step, {}, fingerprint {}\n", file, count_of(verdict.ops, "op"), verdict.fingerprint));
  }
}

Json to_json(const Verdict& verdict) {
  if (verdict.error) return {{"file", verdict.file}, {"valid", false}, {"error", error_json(*verdict.error)}};
  return {{"file", verdict.file}, {"valid", true}, {"ops", verdict.ops}, {"fingerprint", verdict.fingerprint}};
}

ExitCode validate(const Files& files, const Console& console) {
  bool all_valid = true;
  Json list = Json::array();
  for (const std::string& file : files) {
    const Verdict verdict = judge(file);
    all_valid = all_valid && !verdict.error;
    if (!console.json()) {
      show(verdict, console);
      continue;
    }
    if (verdict.error) console.complain(*verdict.error);
    list.push_back(to_json(verdict));
  }
  if (console.json()) console.print_json(list);
  return all_valid ? ExitCode::kOk : ExitCode::kError;
}

}  // namespace

Command add_validate(CLI::App& root) {
  CLI::App* app = new_command(
      root, {.name = "validate",
             .summary = "Check that files are consistent steps",
             .examples = {{{"build/tidemark validate examples/steps/two_layer_mlp.step.jsonl", "one file"},
                           {"build/tidemark validate examples/steps/*.step.jsonl", "many files"},
                           {"build/tidemark validate --json examples/steps/*.step.jsonl", "for scripts"}}}});
  const auto files = std::make_shared<Files>();
  app->add_option(std::string(kStepName), *files, kStepHelp)->required();
  return {app, [files](Console& console) { return validate(*files, console); }};
}

}  // namespace tidemark::cli
