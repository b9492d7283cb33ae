#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "tidemark/device/device.h"
#include "tidemark/step/step.h"
#include "tidemark/zoo/record.h"

namespace tidemark::cli {

inline constexpr const char* kStepHelp =
    "a recorded step (a step file, plain or .zst), a built-in model or a Hugging Face config.json";

// What a native step is made with, as options of a command.
struct NativeOptions {
  std::size_t batch = 1;
  std::size_t sequence = 0;
  std::size_t image = 0;
  std::string dtype = "float32";
  std::string optimizer = "adamw";
  std::string form;       // empty: PyTorch's own choice for the target
  std::string target;     // empty: the device that a command is about, or the CPU
  std::string precision;  // empty: by dtype
  std::string attention = "auto";
  std::size_t micro_batches = 1;
  double clip_norm = 0;
  std::vector<std::string> given;  // the options that the user has given, as they are written
};
void add_native_options(CLI::App& app, NativeOptions& options);
// A native model runs the kernels of the device that a command is about, if the user has not said another target.
void follow_device(NativeOptions& options, device::DeviceKind kind);
zoo::StepOptions step_options(const NativeOptions& options);

// The model that a MODEL argument names. Throws: Error that says what a MODEL may be.
zoo::Config read_model_argument(const std::string& argument);

// The step that a STEP argument names: a file, or a native model with `options`. Every command asks here, so
// that what STEP may be is said once.
// Throws: Error that says what a STEP may be, also for options of a native model with a file.
step::Step read_step_argument(const std::string& argument, const NativeOptions& options = {});

}  // namespace tidemark::cli
