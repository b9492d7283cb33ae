#include <gtest/gtest.h>

#include <cstdlib>

#include "../support/scratch_folder.h"
#include "tidemark/step/read_step.h"
#include "tidemark/step/write_step.h"

namespace tidemark::step {
namespace {

const std::string kExample = std::string(TIDEMARK_SOURCE_DIR) + "/examples/steps/two_layer_mlp.step.jsonl";

TEST(Example, TheShippedStepIsWhatItsProgramWrites) {
  const std::string program = TIDEMARK_EXAMPLE_PROGRAM;
  ASSERT_FALSE(program.empty()) << "configure with TIDEMARK_BUILD_EXAMPLES=ON";
  const test::ScratchFolder scratch;
  ASSERT_EQ(std::system((program + " " + scratch.path("example")).c_str()), 0);
  EXPECT_EQ(test::read_whole_file(scratch.path("example")), test::read_whole_file(kExample))
      << "write it again: build_a_step examples/steps/two_layer_mlp.step.jsonl";
}

TEST(Example, ReadsAndWritesTheSameBytes) {
  EXPECT_EQ(step_text(read_step(kExample)), test::read_whole_file(kExample));
}

}  // namespace
}  // namespace tidemark::step
