#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "../planner/all_paths.h"
#include "../planner/random_problem.h"
#include "../support/random.h"
#include "random_hints.h"
#include "tidemark/certify/make_certificate.h"
#include "tidemark/certify/prices.h"
#include "tidemark/certify/prove_part.h"
#include "tidemark/cost/step_cost.h"
#include "tidemark/device/catalog.h"
#include "tidemark/plan/plan_file.h"
#include "tidemark/planner/build_problem.h"
#include "tidemark/planner/facts.h"
#include "tidemark/planner/path.h"
#include "tidemark/verify/certificate_file.h"
#include "tidemark/verify/two_sided_check.h"
#include "tidemark/zoo/record.h"

// Proofs where plans have to fit two sides of the graph.

namespace tidemark::certify {
namespace {

using verify::PathAnswer;

struct Kinds {
  std::int64_t here = 0;
  std::int64_t forward = 0;
  std::int64_t mixture = 0;
  std::int64_t both = 0;

  void count(const verify::PartProof& part) {
    const std::int64_t share = part.sides[0].forward_share;
    ++(part.sides.size() > 1 ? both : share == 0 ? here : share == verify::kShares ? forward : mixture);
  }
};

// The best time of all paths that fit both sides has a proof, of one kind or another, and a ps more has none.
TEST(TwoSidesCertificate, ProvesWhatAllPathsSayAndNothingMore) {
  const std::uint64_t count = std::getenv("TIDEMARK_CAMPAIGN") != nullptr ? 20'000 : 300;
  Kinds kinds;
  for (std::uint64_t seed = 1; seed <= count && !HasFailure(); ++seed) {
    test::Random random(seed);
    const std::int64_t most = random.pick<std::int64_t>({20, 1000});
    planner::Problem problem;
    problem.episodes = {test::random_episode(random, {.most = most})};
    const planner::Episode& here = problem.episodes[0];
    if (test::path_count(here) > 5000) continue;
    problem.forward_episodes = {test::random_forward(here, random, most)};
    std::vector<std::pair<std::int64_t, std::int64_t>> all;  // peak and time
    std::set<std::int64_t> rooms;
    test::for_each_path(here, [&](const planner::Path& p) {
      const planner::PathFigures figures = measure(here, p);
      const std::int64_t peak = std::max(figures.peak_bytes, measure(problem.forward_episodes[0], p).peak_bytes);
      all.emplace_back(peak, figures.time_ps);
      rooms.insert(peak);
    });
    for (const std::int64_t room : rooms) {
      std::int64_t best = verify::kNoWay;
      for (const auto& [peak, ps] : all)
        if (peak <= room) best = std::min(best, ps);
      if (best == 0) continue;
      const PartProver prover(problem, 0, room, verify::kMostEntries);
      verify::PartProof part{.bound_ps = best};
      ASSERT_EQ(prover.prove(part), PathAnswer::kNone) << "seed " << seed << " room " << room;
      kinds.count(part);
      ++part.bound_ps;
      ASSERT_EQ(prover.prove(part), PathAnswer::kFound) << "seed " << seed << " room " << room;
    }
  }
  EXPECT_GT(kinds.here, 100);
  EXPECT_GT(kinds.forward, 50);
  EXPECT_GT(kinds.mixture + kinds.both, 20);  // a mixture alone seldom does in so small graphs
}

// A model under autocast, planned at several budgets.
class Autocast : public testing::Test {
 protected:
  Autocast() : step_(record()), cost_(cost::price_step(step_, device::find_device("h100-sxm"))) {}

  static step::Step record() {
    zoo::StepOptions options{.batch = 8, .sequence = 64, .target = nn::Target::kCuda};
    zoo::set_precision(options, "autocast-bf16");
    return zoo::record(zoo::Gpt2Config{.layers = 4, .width = 256, .heads = 4, .vocabulary = 512, .positions = 64},
                       options);
  }

  struct Planned {
    planner::PlannerOptions wishes;
    planner::PlanResult result;
    plan::PlanFile file;
    Hash128 hash;
    Certified made;
  };

  Planned plan_at(std::int64_t room_bytes) const {
    Planned p;
    p.wishes.budget_bytes = room_bytes;
    p.result = planner::plan_step(step_, cost_, p.wishes);
    const plan::PortablePlan portable =
        plan::describe(step_, p.result.plan, planner::facts_of(step_, p.result, "h100-sxm", p.wishes));
    p.file = {p.result.plan, portable.facts, portable.fingerprint};
    p.hash = plan::hash_of(portable);
    p.made = make_certificate(step_, cost_, p.wishes, p.result, "h100-sxm", p.hash);
    return p;
  }

  std::vector<std::int64_t> rooms() const {
    const planner::PlanResult free = planner::plan_step(step_, cost_, {.budget_bytes = std::int64_t{1} << 60});
    const std::int64_t range = free.unplanned_peak_bytes - free.smallest_peak_bytes;
    std::vector<std::int64_t> rooms;
    for (const std::int64_t place : {1, 2, 3, 4, 6, 8, 12, 20, 40, 60, 80, 98})
      rooms.push_back(free.smallest_peak_bytes + range / 100 * place);
    return rooms;
  }

  verify::CertificateVerdict check(const verify::Certificate& certificate, const Planned& p) const {
    const planner::Times times = planner::times_of(cost_);
    return verify::check_certificate(
        certificate, {.step = step_, .times = times, .workspace = nullptr, .plan = &p.file, .plan_hash = p.hash});
  }

  step::Step step_;
  cost::StepCost cost_;
};

verify::Certificate with_bound(verify::Certificate certificate, std::int64_t more_ps) {
  certificate.claim = verify::Claim::kBound;
  certificate.bound_ps += more_ps;
  const auto part = std::find_if(certificate.parts.begin(), certificate.parts.end(),
                                 [](const verify::PartProof& one) { return one.bound_ps > 0; });
  part->bound_ps += more_ps;
  part->entries = verify::kMostEntries;
  return certificate;
}

TEST_F(Autocast, PlansHaveCertificates) {
  Kinds kinds;
  test::Random random(1);
  for (const std::int64_t room : rooms()) {
    const Planned p = plan_at(room);
    ASSERT_EQ(p.result.termination, planner::Termination::kOptimal) << room;
    ASSERT_TRUE(p.made.certificate) << room << ": " << p.made.reason;
    const verify::Certificate& good = *p.made.certificate;
    for (const verify::PartProof& part : good.parts)
      if (part.bound_ps > 0) kinds.count(part);
    EXPECT_EQ(good.bound_ps, p.result.recompute_ps);
    EXPECT_EQ(check(good, p).problem, "") << room;
    EXPECT_EQ(verify::read_certificate_text(verify::write_certificate(good), "again"), good);
    EXPECT_EQ(check(with_bound(good, -1), p).problem, "") << room;
    EXPECT_NE(check(with_bound(good, 1), p).problem, "") << room;
    // Other hints may make a check give up, and those for one side leave it without what the other one says; nothing
    // makes a better bound true.
    for (int i = 0; i < 8; ++i) {
      verify::Certificate other = with_bound(good, 0);
      for (verify::PartProof& part : other.parts) {
        part.sides.resize(static_cast<std::size_t>(random.between(1, 3)));
        for (verify::SideHints& side : part.sides) side.forward_share = random.between(0, 4) * verify::kShares / 4;
        if (random.chance(50)) part.sides[0].prices = {random.between(1, std::int64_t{1} << 40)};
        for (verify::SideHints& side : part.sides) {
          side.other_prices.clear();
          if (side.forward_share % verify::kShares != 0 || random.chance(50)) continue;
          side.other_prices = test::random_other_prices(random, 1 << 20, 20);
        }
        if (part.bound_ps > 0) part.entries = 3'000'000;
      }
      const std::string problem = check(other, p).problem;
      EXPECT_TRUE(problem.empty() || problem.find("not over after") != std::string::npos ||
                  (other.parts[0].sides.size() == 1 && problem.find("there is a way") != std::string::npos))
          << room << ": " << problem;
      for (verify::PartProof& part : other.parts)
        if (part.bound_ps > 0) part.bound_ps += 1;
      other.bound_ps += 1;
      EXPECT_FALSE(check(other, p).holds) << room;
    }
  }
  EXPECT_GT(kinds.forward + kinds.mixture + kinds.both, 2);
}

// Each side with prices on the other one is a proof wherever there is one, alone with nothing else named.
TEST_F(Autocast, PricesOnTheOtherSideProveTheSame) {
  const planner::Times times = planner::times_of(cost_);
  const planner::Problem problem =
      planner::build_sharpest_problem(step_, planner::find_space(step_, times, {}), {.round_to_bytes = 1});
  std::int64_t priced = 0;
  for (const std::int64_t room : rooms()) {
    const Planned p = plan_at(room);
    ASSERT_TRUE(p.made.certificate) << room << ": " << p.made.reason;
    verify::Certificate other = *p.made.certificate;
    for (std::size_t i = 0; i < other.parts.size(); ++i) {
      if (other.parts[i].bound_ps == 0) continue;
      const verify::Sides sides = verify::fitting_sides(problem.episodes[i], problem.forward_episodes[i], room);
      const OtherPrices prices = choose_other_prices(sides, room, verify::kShares / 2);
      ASSERT_FALSE(prices.of_here.empty() && prices.of_forward.empty()) << room;
      other.parts[i].entries = verify::kMostEntries;
      other.parts[i].sides = {{.forward_share = verify::kShares, .other_prices = prices.of_forward},
                              {.forward_share = 0, .other_prices = prices.of_here}};
      ++priced;
    }
    EXPECT_EQ(verify::read_certificate_text(verify::write_certificate(other), "again"), other);
    EXPECT_EQ(check(other, p).problem, "") << room;
    const verify::Certificate more = with_bound(other, 1);
    EXPECT_NE(check(more, p).problem, "") << room;
  }
  EXPECT_GT(priced, 8);
}

}  // namespace
}  // namespace tidemark::certify
