#include "page.h"

#include <fmt/format.h>

#include <cmath>

#include "fit.h"
#include "scores.h"

namespace tidemark::accuracy {

namespace {

using Folds = std::map<std::string, cost::Constants>;

constexpr int kPromisedRanking = 90;

constexpr const char* kHead = R"(# How far off times are

Written by `build/accuracy --write docs/accuracy.md`; the model is described in [cost_model.md](cost_model.md), the
measurements in [data/op_times](../data/op_times/README.md). Errors are the mean of |predicted / measured - 1| in percent.

**How it is measured.** Each GPU in turn is left out, the constants are fitted to the other four, and the one left out is
predicted. Of its own it contributes its data sheet and one probe: a single 4096 x 4096 x 4096 product. Beside it stands plain
roofline: the longer of FLOPs over the listed peak and bytes over the listed bandwidth.

**What is not left out.** Chosen with all five GPUs in view: the form of the formulas; which tiles batched products have on each
generation (read off kernel names); how much long rows cost at the most; the constants of convolutions. The tensor core constants
have only one GPU to be fitted to. Numbers for other GPUs will be worse than these for what they do differently.
)";

std::string cell(const Scores& scores, const std::string& gpu) {
  const auto found = scores.find(gpu);
  return found == scores.end() ? " - |"
                               : fmt::format(" {:.1f} ({:.1f}) |", found->second.model, found->second.roofline);
}

std::string gpu_heads() {
  std::string text;
  for (const std::string& gpu : kGpus) text += fmt::format(" {} |", gpu);
  return text;
}

std::string row(const std::string& name, const Scores& scores, bool best_is_high) {
  double lowest = 1e300;
  for (const auto& [gpu, score] : scores) lowest = std::min(lowest, score.model);
  std::string text =
      fmt::format("| {} | {:.1f} ({:.1f}) | {:.1f} |", name, mean_of(scores, &Score::model),
                  mean_of(scores, &Score::roofline), best_is_high ? lowest : worst_of(scores, &Score::model));
  for (const std::string& gpu : kGpus) text += cell(scores, gpu);
  return text + "\n";
}

std::string op_table(const OpTimes& times, const Folds& without) {
  const auto scores = op_scores(times, without);
  std::string text = "\n## Single ops\n\nError in percent; plain roofline in parentheses.\n";
  for (const auto& [part, title] : {std::pair{"models", "Shapes that occur in models"}, {"grid", "Random shapes"}}) {
    text += fmt::format("\n{}:\n\n| op | mean over GPUs | worst GPU |{}\n|---|---:|---:|---:|---:|---:|---:|---:|\n",
                        title, gpu_heads());
    for (const char* op : {"linear", "bmm", "pointwise", "softmax", "layer_norm", "conv2d"}) {
      const auto found = scores.find({op, part});
      if (found != scores.end()) text += row(op, found->second, false);
    }
  }
  const Score tensor_core = tensor_core_score(times, cost::kConstants);
  text += fmt::format(
      "\nbfloat16 products on an H100, {} rows: {:.1f} ({:.1f}); fitted to these rows, nothing is left out.\n"
      "The random shapes on the P4 were measured while the board slowed itself down (0.19 of its peak against 0.75).\n",
      times.tensor_core.size(), tensor_core.model, tensor_core.roofline);
  return text;
}

std::string ranking_table(const OpTimes& times, const Folds& without) {
  std::string text = fmt::format(
      "\n## Which of two is faster\n\nPairs of one op on one GPU whose measured times differ by a factor of 1.2 to 2: "
      "how many "
      "percent are ordered right;\nplain roofline in parentheses.\n\n| op | mean over GPUs | worst GPU "
      "|{}\n|---|---:|---:|---:|---:|---:|---:|---:|\n",
      gpu_heads());
  std::string low;
  for (const auto& [op, scores] : rankings(times, without)) {
    text += row(op, scores, true);
    for (const auto& [gpu, score] : scores)
      if (score.model < kPromisedRanking)
        low += fmt::format("{}{} on the {} {:.1f}", low.empty() ? "" : ", ", op, gpu, score.model);
  }
  return text + fmt::format("\n{} is promised of each op as a mean over GPUs. Single GPUs are below that: {}.\n",
                            kPromisedRanking, low.empty() ? "none" : low);
}

std::string step_table(const OpTimes& times, const Folds& without) {
  std::string rows;
  double model = 0, roofline = 0;
  int count = 0;
  for (const StepScore& score : step_scores(times, without)) {
    const double measured = score.step->seconds;
    const double off = 100 * (score.model_s / measured - 1);
    const double roofline_off = 100 * (score.roofline_s / measured - 1);
    rows += fmt::format("| {} | {} | {:.1f} | {:.1f} | {:+.1f} | {:+.1f} |\n", score.step->gpu, score.step->name,
                        measured * 1e3, score.model_s * 1e3, off, roofline_off);
    if (score.step->gpu == "P4") continue;
    model += std::abs(off);
    roofline += std::abs(roofline_off);
    ++count;
  }
  return fmt::format(
      "\n## Whole steps\n\nMean error of {} steps without the P4: **{:.1f} %** (plain roofline {:.1f} %). The P4 was "
      "slowing "
      "itself down.\nThe source's lists of ops are approximate, and it lists none for two of its steps, which are left "
      "out.\n\n| GPU | step: model, mode, sequence x batch | measured ms | predicted ms | off by % | roofline off by % "
      "|\n|---|---|---:|---:|---:|---:|\n{}",
      count, model / count, roofline / count, rows);
}

}  // namespace

std::string page_text(const OpTimes& times) {
  const Folds without = fit_without_each(times);
  return kHead + op_table(times, without) + ranking_table(times, without) + step_table(times, without);
}

}  // namespace tidemark::accuracy
