// accuracy DATA: fits the model's constants with each GPU left out in turn, and prints what remains as error.

#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <exception>

#include "fit.h"
#include "scores.h"

int main(int argc, char** argv) {
  using namespace tidemark;
  using namespace tidemark::accuracy;
  const OpTimes times = read_op_times(argv[1]);
  std::map<std::string, cost::Constants> without;
  const bool quick = argc > 2 && std::strcmp(argv[2], "--quick") == 0;
  for (const std::string& gpu : kGpus) {
    std::vector<std::string> others;
    for (const std::string& other : kGpus)
      if (other != gpu) others.push_back(other);
    without[gpu] = quick ? cost::kConstants : fit(times, others, cost::kConstants);
  }
  if (!quick) {
    without["all"] = fit(times, kGpus, cost::kConstants);
    for (const Knob& knob : knobs()) {
      fmt::print("{:22}", knob.name);
      for (auto& [gpu, constants] : without) fmt::print(" {}={:.4g}", gpu, *knob.at(constants));
      fmt::print("\n");
    }
  }
  for (const auto& [key, scores] : op_scores(times, without)) {
    fmt::print("{:11} {:7} mean {:5.1f} worst {:5.1f} roofline {:5.1f}/{:5.1f} |", key.first, key.second,
               mean_of(scores, &Score::model), worst_of(scores, &Score::model), mean_of(scores, &Score::roofline),
               worst_of(scores, &Score::roofline));
    for (const auto& [gpu, s] : scores) fmt::print(" {} {:.1f}", gpu, s.model);
    fmt::print("\n");
  }
  fmt::print("bf16 {:.1f} roofline {:.1f}\n", tensor_core_score(times, cost::kConstants).model,
             tensor_core_score(times, cost::kConstants).roofline);
  double e = 0, r = 0;
  int n = 0;
  for (const StepScore& s : step_scores(times, without)) {
    fmt::print("{:8} {:30} {:8.1f} ms model {:+.1f}% roofline {:+.1f}%\n", s.step->gpu, s.step->name,
               s.step->seconds * 1e3, 100 * (s.model_s / s.step->seconds - 1),
               100 * (s.roofline_s / s.step->seconds - 1));
    if (s.step->gpu != "P4") {
      e += std::abs(s.model_s / s.step->seconds - 1);
      r += std::abs(s.roofline_s / s.step->seconds - 1);
      ++n;
    }
  }
  fmt::print("steps without P4: {:.1f} roofline {:.1f}\n", 100 * e / n, 100 * r / n);
  for (const auto& [op, scores] : rankings(times, without)) {
    fmt::print("rank {:11}", op);
    for (const auto& [gpu, s] : scores) fmt::print(" {} {:.1f} ({:.1f})", gpu, s.model, s.roofline);
    fmt::print("\n");
  }
}
