// The cost model against measurements: writes docs/accuracy.md, or shows what the constants would be.
//
//   build/accuracy                                the page, on stdout
//   build/accuracy --write docs/accuracy.md       the page, into the file
//   build/accuracy --fit                          the fitted constants, with each GPU left out and with all
//   build/accuracy --data FOLDER                  other measurements than data/op_times

#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

#include "fit.h"
#include "page.h"
#include "scores.h"
#include "tidemark/base/atomic_file.h"

namespace {

using namespace tidemark;
using namespace tidemark::accuracy;

std::string constants_text(const OpTimes& times) {
  auto by_fold = fit_without_each(times);
  by_fold["all"] = fit(times, kGpus, plain_start());
  by_fold["now"] = cost::kConstants;
  std::string text = fmt::format("{:22}", "without");
  for (const auto& [fold, constants] : by_fold) text += fmt::format("{:>10}", fold);
  text += "\n";
  for (const Knob& knob : knobs()) {
    text += fmt::format("{:22}", knob.name);
    for (auto& [fold, constants] : by_fold) text += fmt::format("{:10.4g}", *knob.at(constants));
    text += "\n";
  }
  return text;
}

int run(int argc, char** argv) {
  std::string folder = "data/op_times";
  std::string page;
  bool only_fit = false;
  for (int i = 1; i < argc; ++i) {
    const bool has_value = i + 1 < argc;
    if (std::strcmp(argv[i], "--fit") == 0) {
      only_fit = true;
    } else if (std::strcmp(argv[i], "--write") == 0 && has_value) {
      page = argv[++i];
    } else if (std::strcmp(argv[i], "--data") == 0 && has_value) {
      folder = argv[++i];
    } else {
      fmt::print(stderr, "accuracy: unknown argument {}; use [--fit] [--write FILE] [--data FOLDER]\n", argv[i]);
      return 2;
    }
  }
  const OpTimes times = read_op_times(folder);
  const std::string text = only_fit ? constants_text(times) : page_text(times);
  if (page.empty()) {
    fmt::print("{}", text);
  } else {
    write_file_atomically(page, text);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "accuracy: {}\n", error.what());
    return 1;
  }
}
