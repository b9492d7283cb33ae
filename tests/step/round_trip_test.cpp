// Writing and reading loses nothing: equal steps, identical bytes. TIDEMARK_CAMPAIGN=1 runs all 10,000 random steps,
// otherwise a sample.

#include <gtest/gtest.h>

#include <cstdlib>

#include "../support/golden.h"
#include "../support/random_step.h"
#include "../support/scratch_folder.h"
#include "tidemark/base/byte_source.h"
#include "tidemark/step/fingerprint.h"
#include "tidemark/step/read_step.h"
#include "tidemark/step/write_step.h"

namespace tidemark::step {
namespace {

std::uint64_t step_count() { return std::getenv("TIDEMARK_CAMPAIGN") != nullptr ? 10000 : 1000; }

TEST(RoundTrip, RandomStepsAreEqualAfterWriteAndRead) {
  std::size_t ops = 0;
  std::size_t saves = 0;
  std::size_t regions = 0;
  std::size_t resizes = 0;
  for (std::uint64_t seed = 0; seed < step_count(); ++seed) {
    const Step step = test::random_step(seed);
    const std::string text = step_text(step);
    const Step again = parse_step(text);
    ASSERT_EQ(step, again) << "seed " << seed;
    ASSERT_EQ(step_text(again), text) << "seed " << seed;
    ASSERT_EQ(fingerprint(again), fingerprint(step)) << "seed " << seed;
    ops += step.tables().ops.size();
    saves += step.tables().saves.size();
    regions += step.tables().regions.size();
    resizes += step.tables().resizes.size();
  }
  // The generator must reach what the test claims to test.
  EXPECT_GT(ops, 5 * step_count());
  EXPECT_GT(saves, 2 * step_count());
  EXPECT_GT(regions, step_count() / 10);
  EXPECT_GT(resizes, step_count() / 10);
}

TEST(RoundTrip, CompressedFilesReadTheSame) {
  const test::ScratchFolder scratch;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Step step = test::random_step(seed);
    write_step(step, scratch.path("s.step.jsonl"));
    write_step(step, scratch.path("s.step.jsonl.zst"));
    EXPECT_EQ(read_step(scratch.path("s.step.jsonl")), step);
    EXPECT_EQ(read_step(scratch.path("s.step.jsonl.zst")), step);
    EXPECT_EQ(test::read_whole_file(scratch.path("s.step.jsonl")), step_text(step));
  }
}

// g++ and clang, debug and release, with and without sanitizers: every build that runs this test compares with one
// file.
TEST(RoundTrip, EveryBuildWritesTheSameBytes) {
  Hasher hash;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Step step = test::random_step(seed);
    hash.add(std::string_view(step_text(step)));
    hash.add(fingerprint(step));
  }
  test::expect_golden("step/random_steps.hash.txt", hash.digest().hex() + "\n");
}

TEST(RoundTrip, SameSeedSameBytes) {
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    EXPECT_EQ(step_text(test::random_step(seed)), step_text(test::random_step(seed)));
}

}  // namespace
}  // namespace tidemark::step
