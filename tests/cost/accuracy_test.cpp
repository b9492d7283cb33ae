// The cost model against measurements of five GPUs, each left out of the fit of the constants in turn. The bounds are
// the promises of docs/accuracy.md.

#include <gtest/gtest.h>

#include <cmath>

#include "accuracy/fit.h"
#include "accuracy/scores.h"

namespace tidemark::accuracy {
namespace {

const OpTimes& times() {
  static const OpTimes kTimes = read_op_times(std::string(TIDEMARK_SOURCE_DIR) + "/data/op_times");
  return kTimes;
}

const std::map<std::string, cost::Constants>& without() {
  static const auto kWithout = fit_without_each(times());
  return kWithout;
}

struct Promise {
  const char* op;
  double mean;
  double worst;
};

TEST(Accuracy, ShapesOfModels) {
  const auto scores = op_scores(times(), without());
  for (const Promise& promise : {Promise{"linear", 10, 16}, Promise{"bmm", 15, 24}, Promise{"pointwise", 14, 100},
                                 Promise{"softmax", 14, 100}, Promise{"layer_norm", 14, 100}}) {
    const Scores& by_gpu = scores.at({promise.op, "models"});
    ASSERT_EQ(by_gpu.size(), 5u) << promise.op;
    EXPECT_LE(mean_of(by_gpu, &Score::model), promise.mean) << promise.op;
    EXPECT_LE(worst_of(by_gpu, &Score::model), promise.worst) << promise.op;
    EXPECT_LT(mean_of(by_gpu, &Score::model), mean_of(by_gpu, &Score::roofline)) << promise.op;
  }
}

TEST(Accuracy, TensorCores) { EXPECT_LE(tensor_core_score(times(), cost::kConstants).model, 8); }

TEST(Accuracy, WholeSteps) {
  double error = 0;
  int count = 0;
  for (const StepScore& score : step_scores(times(), without())) {
    if (score.step->gpu == "P4") continue;
    error += 100 * std::abs(score.model_s / score.step->seconds - 1);
    ++count;
  }
  ASSERT_EQ(count, 35);  // 40, less three on the P4 and two whose ops the source does not list
  EXPECT_LE(error / count, 10);
}

TEST(Accuracy, Ranking) {
  for (const auto& [op, by_gpu] : rankings(times(), without())) EXPECT_GE(mean_of(by_gpu, &Score::model), 90) << op;
}

// What the library carries is what the fit gives, rounded: a fit from there gains next to nothing.
TEST(Accuracy, TheConstantsAreFitted) {
  const double now = loss(times(), kGpus, cost::kConstants);
  EXPECT_LT(now - loss(times(), kGpus, fit(times(), kGpus, cost::kConstants)), 0.003);
}

}  // namespace
}  // namespace tidemark::accuracy
