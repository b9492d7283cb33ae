// tidemark capture MODEL: records a step of a native model and writes it to a file.

#include <fmt/format.h>

#include <memory>

#include "commands.h"
#include "step_argument.h"
#include "text_layout.h"
#include "tidemark/step/fingerprint.h"
#include "tidemark/step/write_step.h"

namespace tidemark::cli {

namespace {

struct CaptureOptions {
  std::string model;
  std::string output;
  NativeOptions native;
};

ExitCode run_capture(const CaptureOptions& options, const Console& console) {
  const zoo::Config config = read_model_argument(options.model);
  const step::Step step = zoo::record(config, step_options(options.native));
  step::write_step(step, options.output);
  const auto ops = static_cast<std::int64_t>(step.tables().ops.size());
  if (console.json()) {
    console.print_json(Json{{"model", options.model},
                            {"file", options.output},
                            {"ops", ops},
                            {"events", step.tables().events.size()},
                            {"fingerprint", step::fingerprint(step).hex()}});
  } else {
    console.print(fmt::format("{}: {}, {}\n", options.output, count_of(ops, "op"),
                              count_of(static_cast<std::int64_t>(step.tables().events.size()), "event")));
  }
  return ExitCode::kOk;
}

}  // namespace

Command add_capture(CLI::App& root) {
  CLI::App* app = new_command(
      root, {.name = "capture",
             .summary = "Record a training step of a model without PyTorch",
             .examples = {{{"build/tidemark capture gpt2 -o build/gpt2.step.jsonl", "one step of GPT-2"},
                           {"build/tidemark capture llama3-8b --seq 4096 -o build/llama.step.zst", "its own sizes"},
                           {"build/tidemark capture examples/configs/small_llama.json -o build/small.step.jsonl",
                            "a Hugging Face config"}}}});
  const auto options = std::make_shared<CaptureOptions>();
  app->add_option("MODEL", options->model, "a built-in model (tidemark models) or a Hugging Face config.json")
      ->required();
  app->add_option("-o,--output", options->output, "the step file to write; compressed when it ends in .zst")
      ->type_name("FILE")
      ->required();
  add_native_options(*app, options->native);
  return {app, [options](Console& console) { return run_capture(*options, console); }};
}

}  // namespace tidemark::cli
