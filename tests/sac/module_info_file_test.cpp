#include "tidemark/sac/module_info_file.h"

#include <gtest/gtest.h>

#include "../support/published_gpt.h"
#include "../support/scratch_folder.h"
#include "tidemark/base/atomic_file.h"
#include "tidemark/base/error.h"
#include "tidemark/cost/reference_roofline.h"

namespace tidemark::sac {
namespace {

std::string published_text() {
  const step::Step step = test::published_gpt_step();
  const auto hardware = cost::find_reference_hardware(cost::ReferenceLine::kM, "a100-80-pcie");
  const auto times = cost::reference_times_ms(step, hardware);
  return module_info_json(module_info(step, times, {.rules = Rules::kReferenceM, .device = {}}));
}

TEST(ModuleInfoFile, ReadsBackWhatItWrites) {
  const std::string text = published_text();
  const ModuleInfo info = parse_module_info(text);
  EXPECT_EQ(info.modules.size(), 62U);
  EXPECT_EQ(info.modules[0].parameter_bytes, 141'674'496);
  EXPECT_EQ(module_info_json(info), text);
  test::ScratchFolder folder;
  write_file_atomically(folder.path("info.json"), text);
  EXPECT_EQ(module_info_json(read_module_info(folder.path("info.json"))), text);
}

std::string error_of(std::string text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  if (at == std::string::npos) return "not found";
  text.replace(at, from.size(), to);
  try {
    parse_module_info(text, "f");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

constexpr std::string_view kSmall =
    R"({"mod_order":{"fw_pre_order":["M"],"bw_pre_order":["M"],"fw_post_order":["M"],"bw_post_order":["M"]},)"
    R"("mod_stats":[{"fqn":"M","param_per_module":1,"grad_per_module":2,"grad_total":3,"act_fw_per_module":4,)"
    R"("act_bw_per_module":5,"act_grad_per_module":-6,"act_total":7,"input_per_module":8,"output_per_module":9,)"
    R"("sac_memory":10,"fw_runtime_per_module":1.5,"bw_runtime_per_module":2.5,"sac_runtime":3.5,"is_leaf":false,)"
    R"("n_segments":1,"slopes":[1.0],"intercepts":[0.0],"breakpoints":[0.01,1.0],"tradeoff_curve":{"0.01":0.0}}]})";

TEST(ModuleInfoFile, SaysWhatIsWrong) {
  const std::string small(kSmall);
  EXPECT_EQ(parse_module_info(small).modules[0].activation_gradient_bytes, -6);
  const std::string remedy = "; try: tidemark sac STEP --export FILE writes one";
  EXPECT_EQ(error_of(small, R"("grad_total":3,)", ""),
            "[f: mod_stats[0] (\"M\"): grad_total] the key is missing; expected the reference's keys" + remedy);
  EXPECT_EQ(
      error_of(small, R"("grad_total":3)", R"("grad_total":1e300)"),
      "[f: mod_stats[0] (\"M\"): grad_total] this is no size; expected a whole number below 2^60, got 1e+300" + remedy);
  EXPECT_EQ(error_of(small, R"("n_segments":1)", R"("n_segments":2)"),
            "[f: mod_stats[0] (\"M\"): n_segments] slopes, intercepts and breakpoints do not fit the number of pieces" +
                remedy);
  EXPECT_EQ(error_of(small, R"("0.01":0.0)", R"("x":0.0)"),
            "[f: mod_stats[0] (\"M\"): tradeoff_curve] a key is no number; expected the part of the bytes that is "
            "given up, got \"x\"" +
                remedy);
  EXPECT_EQ(error_of(small, R"("act_total":7)", R"("act_total":7,"act_total":7)"),
            "[f] a key stands twice; expected each key once, got \"act_total\"" + remedy);
  EXPECT_EQ(
      error_of(small, "}]}", "}]"),
      "[f] the file is not valid JSON; expected the statistics of a model's modules, got something else at byte " +
          std::to_string(small.size()) + remedy);
  EXPECT_EQ(error_of(small, R"(["M"])", "[[[[[[[[[[]]]]]]]]]]"),
            "[f] the file is nested too deeply; expected at most 8 levels" + remedy);
}

}  // namespace
}  // namespace tidemark::sac
