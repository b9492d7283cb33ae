#include "tidemark/plan/plan_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "../support/random_plan.h"
#include "../support/random_training.h"
#include "../support/tiny_program.h"
#include "tidemark/base/error.h"

namespace tidemark::plan {
namespace {

using Json = nlohmann::ordered_json;

PlanFacts some_facts() {
  return {.device = "h100-sxm",
          .budget_bytes = 1000,
          .reserve_bytes = 10,
          .against = "exact",
          .termination = "optimal",
          .start_bytes = 300,
          .peak_bytes = 900,
          .recompute_ps = 50,
          .bound_ps = 50,
          .smallest_peak_bytes = 700};
}

std::string error_of(const std::string& text, const step::Step& step) {
  try {
    read_plan_text(text, "plan.json", step);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(PlanFile, IsReadAsItWasWritten) {
  int with_units = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const step::Step step = test::random_training(seed).step;
    const Plan plan = test::random_plan(step, seed);
    const std::string text = write_plan(step, plan, some_facts());
    const PlanFile file = read_plan_text(text, "plan.json", step);
    EXPECT_EQ(file.plan, plan) << seed;
    EXPECT_EQ(file.facts, some_facts());
    EXPECT_EQ(write_plan(step, file.plan, file.facts), text);
    with_units += plan.units.empty() ? 0 : 1;
  }
  EXPECT_GT(with_units, 100);
}

// What older files do not have stays out of them, and out of their hash.
TEST(PlanFile, SaysWhatSizesAreRoundedToAndWhatHasNoPrice) {
  const step::Step step = test::random_training(1).step;
  PlanFacts facts = some_facts();
  EXPECT_EQ(write_plan(step, {}, facts).find("rounding_bytes"), std::string::npos);
  EXPECT_EQ(write_plan(step, {}, facts).find("unpriced"), std::string::npos);
  facts.against = "rounded";
  facts.rounding_bytes = 4096;
  facts.unpriced = {{"mine.magic.default", 3, 700}, {"aten.sort.default", 1, 8}};
  const std::string text = write_plan(step, {}, facts);
  EXPECT_EQ(Json::parse(text)["rounding_bytes"], 4096);
  EXPECT_EQ(Json::parse(text)["unpriced"],
            Json::parse(R"([["mine.magic.default", 3, 700], ["aten.sort.default", 1, 8]])"));
  EXPECT_EQ(read_plan_text(text, "plan.json", step).facts, facts);

  const auto error_with = [&](const char* key, const Json& value) {
    Json json = Json::parse(text);
    json[key] = value;
    return error_of(json.dump(), step);
  };
  for (const Json& bad : {Json(0), Json((std::int64_t{1} << 30) + 1)})
    EXPECT_NE(error_with("rounding_bytes", bad).find("[plan.json: rounding_bytes] sizes cannot be rounded up to that"),
              std::string::npos);
  for (const Json& bad : {Json(-1), Json(1.5), Json("512"), Json(nullptr)})
    EXPECT_NE(error_with("rounding_bytes", bad).find("[plan.json: rounding_bytes] this is no count"),
              std::string::npos);
  EXPECT_NE(error_with("rounding_bytes", 512).find("changed after it was written"), std::string::npos);
  EXPECT_NE(error_with("against", "exact").find("1 for exact bytes"), std::string::npos);
  EXPECT_NE(error_with("against", "reserved").find("512 for reserved"), std::string::npos);
  for (const char* bad : {R"(5)", R"([5])", R"([["x"]])", R"([["x", -1, 1]])", R"([["x", 1, 1.5]])", R"([[5, 1, 1]])"})
    EXPECT_NE(error_with("unpriced", Json::parse(bad)).find("[plan.json: unpriced] this is no"), std::string::npos)
        << bad;
  EXPECT_NE(error_with("unpriced", Json::array()).find("changed after it was written"), std::string::npos);
}

TEST(PlanFile, OlderFilesMeanOneOrTheBlocksOfCuda) {
  EXPECT_EQ(rounding_of("exact", std::nullopt), 1);
  EXPECT_EQ(rounding_of("rounded", std::nullopt), 512);
  EXPECT_EQ(rounding_of("reserved", std::nullopt), 512);
  EXPECT_EQ(rounding_of("rounded", 4096), 4096);
}

// One call that runs mm, view, mm: the second mm is occurrence 1 of its name.
// A file is of a search that found a plan, or of a plan that somebody gave; and about one of three kinds of bytes.
TEST(PlanFile, KnowsItsWords) {
  const step::Step step = test::random_training(1).step;
  for (const char* word : {"fits", "optimal", "feasible", "given", "infeasible", "limit", "not_found", "", "banana"}) {
    PlanFacts facts = some_facts();
    facts.termination = word;
    const bool is_known = std::string_view("fits optimal feasible given").find(word) != std::string_view::npos;
    const bool is_fine = is_known && !facts.termination.empty();
    EXPECT_EQ(error_of(write_plan(step, {}, facts), step).find("termination") == std::string::npos, is_fine) << word;
  }
  for (const char* word : {"exact", "rounded", "reserved", "banana"}) {
    PlanFacts facts = some_facts();
    facts.against = word;
    EXPECT_EQ(error_of(write_plan(step, {}, facts), step).empty(), facts.against != "banana") << word;
  }
}

TEST(PlanFile, CountsOpsByNameWithinTheCall) {
  test::TinyProgram p;
  const auto x = p.resident(step::Role::kInput, 10);
  p.pass(step::PassKind::kForward);
  const step::ModuleId child = p.module(p.root, "block", "Block");
  const auto call = p.enter(child, {x});
  const auto a = p.op("aten.mm.default", {x}, 20);
  const auto b = p.view(a);
  const auto save = p.pack(b);
  const auto c = p.op("aten.mm.default", {b}, 30);
  const step::OpId second = p.last_op();
  p.exit(call, {c});
  p.pass(step::PassKind::kBackward);
  p.backward({save}, 5);
  const step::Step step = p.finish();
  const Plan plan{{Unit{.call = call, .saved_ops = {second}}}};
  const Json json = Json::parse(write_plan(step, plan, {}));
  EXPECT_EQ(json.at("units")[0].at("module"), "block");
  EXPECT_EQ(json.at("units")[0].at("saved").dump(), R"({"aten.mm.default":[1]})");
}

TEST(PlanFile, RefusesAPlanOfAnotherStep) {
  const step::Step one = test::random_training(1).step;
  const step::Step other = test::random_training(3).step;
  EXPECT_NE(error_of(write_plan(one, {}, some_facts()), other).find("the plan is of another step"), std::string::npos);
}

TEST(PlanFile, NoticesAChange) {
  const step::Step step = test::random_training(5).step;
  Json json = Json::parse(write_plan(step, {}, some_facts()));
  json["budget_bytes"] = 2000;
  EXPECT_NE(error_of(json.dump(), step).find("changed after it was written"), std::string::npos);
}

// Every value of a file replaced by what does not belong there, and every key left out: an error, never a crash.
TEST(PlanFile, RefusesWhatIsNoPlan) {
  std::uint64_t seed = 1;
  step::Step step = test::random_training(seed).step;
  Plan plan = test::random_plan(step, seed);
  while (plan.units.empty() || plan.units[0].saved_ops.empty()) {
    step = test::random_training(++seed).step;
    plan = test::random_plan(step, seed);
  }
  const Json good = Json::parse(write_plan(step, plan, some_facts()));
  ASSERT_EQ(error_of(good.dump(), step), "");
  const Json flat = good.flatten();
  const std::vector<Json> strange = {nullptr, -1, 1e300, "x", Json::array(), Json::object(), true, 4611686018427387905};
  int refused = 0;
  for (const auto& [pointer, value] : flat.items()) {  // empty lists are null there
    for (const Json& other : strange) {
      Json bad = good;
      bad[Json::json_pointer(pointer)] = other;
      if (other == good.at(Json::json_pointer(pointer)) || pointer == "/minor") continue;  // not read
      EXPECT_NE(error_of(bad.dump(), step), "") << pointer << " " << other;
      ++refused;
    }
  }
  for (const auto& [key, value] : good.items()) {
    Json bad = good;
    bad.erase(key);
    if (key == "minor" || key == "objective") continue;
    EXPECT_NE(error_of(bad.dump(), step), "") << key;
  }
  EXPECT_GT(refused, 100);
  for (const char* text : {"", "{", "[]", "null", "{}", "{\"format\":\"tidemark-plan\",\"format\":1}", "\xff"})
    EXPECT_NE(error_of(text, step), "") << text;
}

}  // namespace
}  // namespace tidemark::plan
