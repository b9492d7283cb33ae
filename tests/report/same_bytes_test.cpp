#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "../support/golden.h"
#include "../support/scratch_folder.h"
#include "tidemark/base/hash.h"
#include "tidemark/device/catalog.h"
#include "tidemark/report/explain_report.h"
#include "tidemark/report/plan_files.h"
#include "tidemark/report/plan_report.h"
#include "tidemark/zoo/record.h"

// The same bytes of plan, certificate and explanation from every compiler, build and number of threads: every build
// that runs this test compares with one file.

namespace tidemark::report {
namespace {

// What a user gets to see of a model at three budgets: too little, the least, and half of what plain training takes.
std::string all_of(const std::string& name, const test::ScratchFolder& scratch) {
  zoo::StepOptions how;
  how.batch = 4;
  how.sequence = name == "gpt2" ? 64 : 0;
  const auto step = std::make_shared<const step::Step>(zoo::record(zoo::find_model(name)->config, how));
  const device::Device device = device::find_device("t4");
  const cost::StepCost cost = cost::price_step(*step, device);
  planner::PlannerOptions options{.budget_bytes = std::int64_t{1} << 50, .against = planner::Against::kRounded};
  const planner::PlanResult ends = planner::plan_step(*step, cost, options);
  const std::int64_t least = ends.smallest_peak_bytes;
  std::string text;
  for (const std::int64_t budget : {least - 1, least, least + (ends.unplanned_peak_bytes - least) / 2}) {
    options.budget_bytes = budget;
    const planner::PlanResult result = planner::plan_step(*step, cost, options);
    const PlanFiles files =
        write_plan_files({*step, cost, options, result, device.name}, {.path = scratch.path("plan.json")});
    if (!files.plan.empty()) text += test::read_whole_file(files.plan);
    text += files.certificate.empty() ? files.no_certificate : test::read_whole_file(files.certificate);
    const PlanReport report = make_report(name, step, device, cost, options, result);
    const ExplainReport explained = explain_plan(report, options, {});
    text +=
        plan_text(report, {}) + explain_text(report, explained.explanation, {}) + explain_json_text(report, explained);
  }
  return text;
}

std::string hash_of(const std::string& name) {
  const test::ScratchFolder scratch;
  Hasher hash;
  hash.add(std::string_view(all_of(name, scratch)));
  return hash.digest().hex();
}

TEST(SameBytes, OfPlanCertificateAndExplanationInEveryBuild) {
  std::string text;
  for (const std::string name : {"toy-gpt", "resnet18", "gpt2"}) text += fmt::format("{} {}\n", hash_of(name), name);
  test::expect_golden("report/same_bytes.txt", text);
}

// 1, 2 and 4 threads at a time; TIDEMARK_CAMPAIGN=1: a hundred times.
TEST(SameBytes, OnEveryRunInAnyNumberOfThreads) {
  const int runs = std::getenv("TIDEMARK_CAMPAIGN") == nullptr ? 2 : 100;
  const std::string expected = hash_of("toy-gpt");
  for (const std::size_t threads : {1u, 2u, 4u})
    for (int run = 0; run < runs; ++run) {
      std::vector<std::string> found(threads);
      {
        std::vector<std::jthread> working;
        for (std::string& one : found) working.emplace_back([&one] { one = hash_of("toy-gpt"); });
      }
      for (const std::string& one : found) ASSERT_EQ(one, expected) << "run " << run << " in " << threads << " threads";
    }
}

}  // namespace
}  // namespace tidemark::report
