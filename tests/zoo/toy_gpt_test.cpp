// The test model of PyTorch's own planner on a CUDA-like device, byte for byte. Let U be one hidden tensor, H = 4 U the
// wide one, L the logits, M a dropout mask:
//   parameters 35,418,624, that is 141,674,496 B; a block has 28,339,200 B of them;
//   kept per block by autograd: 8 U + 2 H + 2 M + statistics of two norms + log-sum-exp + two RNG numbers;
//   before the blocks: a dropout's output, its mask and the positions; after them: a norm and the logits.

#include "tidemark/zoo/toy_gpt.h"

#include <gtest/gtest.h>

#include "../support/published_gpt.h"
#include "tidemark/memory/reference_tracker.h"

namespace tidemark::zoo {
namespace {

using memory::ReferenceCategory;
using memory::ReferenceModule;
using memory::ReferenceRecord;
using memory::ReferenceState;

constexpr std::int64_t kHidden = 8 * 1024 * 768 * 4;
constexpr std::int64_t kWide = 4 * kHidden;
constexpr std::int64_t kLogits = std::int64_t{8} * 1024 * 8192 * 4;
constexpr std::int64_t kMask = 8 * 1024 * 768;
constexpr std::int64_t kNorm = 2 * 8 * 1024 * 4;
constexpr std::int64_t kLogSumExp = 8 * 12 * 1024 * 4;
constexpr std::int64_t kRng = 2 * 512;
constexpr std::int64_t kBlockKeeps = 8 * kHidden + 2 * kWide + 2 * kMask + 2 * kNorm + kLogSumExp + kRng;

const ReferenceModule& module_named(const step::Step& step, const ReferenceRecord& record, std::string_view fqn) {
  for (const ReferenceModule& module : record.modules)
    if (step.fqn(module.module) == fqn) return module;
  throw std::runtime_error("no such module");
}

TEST(ToyGpt, HasThePublishedParameters) {
  const step::Step step = test::published_gpt_step();
  const ReferenceRecord record = memory::track_like_reference(step);
  EXPECT_EQ(module_named(step, record, "").parameter_bytes, 141'674'496);
  EXPECT_EQ(module_named(step, record, "layers.0").parameter_bytes, 28'339'200);
}

TEST(ToyGpt, KeepsThePublishedBytes) {
  EXPECT_EQ(kBlockKeeps, 415'761'408);
  const step::Step step = test::published_gpt_step();
  const ReferenceRecord record = memory::track_like_reference(step);
  const auto activations = [&](std::string_view fqn, ReferenceState state) {
    return module_named(step, record, fqn)[state][0][ReferenceCategory::kActivation];
  };
  for (const char* block : {"layers.0", "layers.1", "layers.2"}) {
    const std::int64_t kept =
        activations(block, ReferenceState::kPostForward) - activations(block, ReferenceState::kPreForward);
    EXPECT_EQ(kept, kBlockKeeps) << block;
  }
  const std::int64_t before = kHidden + kMask + 8'192;
  EXPECT_EQ(before, 31'465'472);
  // While the blocks run, a variable of the model still holds the embedded positions.
  EXPECT_EQ(activations("layers.0", ReferenceState::kPreForward), before + 1024 * 768 * 4);
  EXPECT_EQ(activations("", ReferenceState::kPostForward), before + 4 * kBlockKeeps + kHidden + kNorm + kLogits);
  EXPECT_EQ(before + 4 * kBlockKeeps + kHidden + kNorm + kLogits, 1'988'177'920);
}

// The published baseline adds up the parameters, what forward keeps and the temporary bytes at the peak of backward; it
// is that of a test without the logits of the iteration before.
TEST(ToyGpt, PeaksAtThePublishedBytes) {
  const step::Step step = test::published_gpt_step();
  const ReferenceRecord record = memory::track_like_reference(step);
  const ReferenceModule& root = module_named(step, record, "");
  const std::int64_t kept = root[ReferenceState::kPostForward][0][ReferenceCategory::kActivation];
  const std::int64_t temporary = root[ReferenceState::kPeakBackward][0][ReferenceCategory::kTemp];
  EXPECT_EQ(temporary, 185'601'024);
  EXPECT_EQ(root.parameter_bytes + kept + temporary, 2'315'453'440);
}

}  // namespace
}  // namespace tidemark::zoo
