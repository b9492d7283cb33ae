// Plans and certificates with something changed, and the hashes mended so that nothing but the check can notice. All
// plans of the step, tried one by one, decide what is true: no untrue claim passes, and no true one is refused.
// TIDEMARK_CAMPAIGN=1 tries 100,000.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include "../support/random.h"
#include "../support/random_plan.h"
#include "certified_case.h"
#include "random_hints.h"
#include "tidemark/base/error.h"
#include "tidemark/base/glob.h"
#include "tidemark/certify/make_certificate.h"
#include "tidemark/memory/replay.h"
#include "tidemark/plan/event_index.h"
#include "tidemark/plan/legality.h"
#include "tidemark/verify/certificate_file.h"

namespace tidemark::certify {
namespace {

using test::CertifiedCase;
using test::PlanOnDisk;
using verify::Certificate;
using verify::Claim;

// What was handed in, and what a check has to say about it.
struct Corrupted {
  Certificate certificate;
  plan::Plan plan;
  std::int64_t room_bytes = 0;  // that the plan's file says
  bool has_plan = true;
  bool has_other_plan_hash = false;
  std::string what = {};
};

std::int64_t least_ps_of(const CertifiedCase& c, const planner::SpaceOptions& space, std::int64_t room_bytes) {
  std::int64_t best = CertifiedCase::kNoPlan;
  const plan::EventIndex index = plan::index_events(c.step());
  for (const test::Tried& one : c.tried()) {
    const bool is_allowed = std::all_of(one.plan.units.begin(), one.plan.units.end(), [&](const plan::Unit& unit) {
      const std::string name = c.step().fqn(c.step()[unit.call].module);
      return space.units.empty() || matches_glob(name, space.units[0]);
    });
    if (!is_allowed) continue;
    std::int64_t peak = one.peak_bytes;
    std::int64_t ps = one.time_ps;
    if (!space.early_stop || space.rng == planner::RngRule::kAlways) {
      plan::Plan plan = one.plan;
      for (plan::Unit& unit : plan.units) {
        unit.early_stop = space.early_stop;
        unit.preserve_rng = unit.preserve_rng || space.rng == planner::RngRule::kAlways;
      }
      peak = memory::replay(c.step(), plan, {}).peak.total_bytes;
      ps = recompute_ps(c.step(), index, c.times(), plan);
    }
    if (peak <= room_bytes) best = std::min(best, ps);
  }
  return best;
}

bool is_true(const CertifiedCase& c, const Certificate& good, const Corrupted& bad) {
  const Certificate& claim = bad.certificate;
  if (claim.step != good.step || claim.times != good.times || claim.workspace.has_value()) return false;
  const std::int64_t least_ps = least_ps_of(c, claim.space, claim.room_bytes);
  if (claim.claim == Claim::kInfeasible) return !bad.has_plan && !claim.plan && least_ps == CertifiedCase::kNoPlan;
  if (!bad.has_plan || !claim.plan || bad.has_other_plan_hash) return false;
  if (claim.least_peak_bytes != 0) return false;
  if (claim.room_bytes != bad.room_bytes || claim.against != "exact") return false;
  if (!plan::check(c.step(), bad.plan).empty()) return false;
  if (memory::replay(c.step(), bad.plan, {}).peak.total_bytes > claim.room_bytes) return false;
  const std::int64_t plan_ps = recompute_ps(c.step(), plan::index_events(c.step()), c.times(), bad.plan);
  if (claim.claim == Claim::kOptimal ? plan_ps != claim.bound_ps : plan_ps < claim.bound_ps) return false;
  return claim.bound_ps <= least_ps;
}

class Corrupter {
 public:
  Corrupter(const CertifiedCase& c, bool has_casts, test::Random& random)
      : c_(c), has_casts_(has_casts), random_(random) {}

  Corrupted corrupt(const Certificate& good, const plan::Plan& plan, std::int64_t room_bytes) {
    Corrupted bad{.certificate = good, .plan = plan, .room_bytes = room_bytes, .has_plan = good.plan.has_value()};
    for (std::int64_t i = random_.between(1, 2); i > 0; --i) change(bad);
    // With time to finish, a check that ends is about truth alone.
    if (random_.chance(90))
      for (verify::PartProof& part : bad.certificate.parts) part.entries = verify::kMostEntries;
    if (bad.has_plan && bad.certificate.plan) {
      const PlanOnDisk disk = test::plan_on_disk(c_, bad.plan, bad.room_bytes);
      bad.has_other_plan_hash = random_.chance(5);
      bad.certificate.plan = disk.hash;
      if (bad.has_other_plan_hash) ++bad.certificate.plan->low;
    }
    return bad;
  }

 private:
  std::int64_t little() { return random_.chance(50) ? random_.between(-2, 2) : random_.between(-200, 200); }

  void change(Corrupted& bad) {
    Certificate& claim = bad.certificate;
    const std::vector<std::int64_t> peaks = c_.peaks();
    switch (random_.below(12)) {
      case 0:
        bad.what += " claim";
        claim.claim = static_cast<Claim>(random_.below(3));
        if (random_.chance(50)) {
          bad.has_plan = claim.claim != Claim::kInfeasible;
          claim.plan = bad.has_plan ? std::optional<Hash128>(Hash128()) : std::nullopt;
        }
        if (claim.claim == Claim::kInfeasible && random_.chance(70)) claim.least_peak_bytes = c_.least_peak_bytes();
        break;
      case 1: {
        bad.what += " bound";
        const std::int64_t more = little();
        claim.bound_ps = std::max<std::int64_t>(claim.bound_ps + more, 0);
        if (claim.parts.empty()) break;
        claim.parts[0].bound_ps = std::max<std::int64_t>(claim.parts[0].bound_ps + more, 0);
        break;
      }
      case 2:
        bad.what += " part";
        if (claim.parts.empty())
          claim.parts.push_back({.bound_ps = claim.bound_ps, .entries = verify::kMostEntries});
        else if (random_.chance(50))
          claim.parts.pop_back();
        else
          claim.parts[random_.below(claim.parts.size())].bound_ps += random_.between(0, 3);
        break;
      case 3:
      case 4:
        bad.what += " prices";
        for (verify::PartProof& part : claim.parts) {
          if (has_casts_) part.sides.resize(static_cast<std::size_t>(random_.between(1, 3)));
          for (verify::SideHints& side : part.sides) change_hints(side);
        }
        break;
      case 5:
      case 6:
        bad.what += " room";
        claim.room_bytes = random_.chance(50) ? std::max<std::int64_t>(claim.room_bytes + little(), 0)
                                              : random_.pick(peaks) - random_.between(0, 1);
        if (random_.chance(80)) bad.room_bytes = claim.room_bytes;
        break;
      case 7:
        bad.what += " space";
        if (random_.chance(30)) claim.space.early_stop = !claim.space.early_stop;
        if (random_.chance(30)) claim.space.rng = planner::RngRule::kAlways;
        if (random_.chance(50)) claim.space.units = {random_.chance(50) ? "*" : "*1*"};
        break;
      case 8:
        bad.what += " peak";
        claim.least_peak_bytes += little();
        break;
      case 9:
        bad.what += " origin";
        if (random_.chance(50)) ++claim.step.low;
        if (random_.chance(50)) ++claim.times.high;
        if (random_.chance(50)) claim.workspace = Hash128();
        break;
      default:
        bad.what += " plan";
        change_plan(bad.plan);
    }
  }

  void change_hints(verify::SideHints& side) {
    if (has_casts_) side.forward_share = random_.chance(50) ? random_.between(0, 2) * 2048 : random_.between(0, 4096);
    side.other_prices.clear();
    if (has_casts_ && random_.chance(30)) {
      side.forward_share = random_.between(0, 1) * 4096;
      side.other_prices = test::random_other_prices(random_, 1000, 30);
    }
    side.unit_bytes = random_.between(0, 1) * random_.between(1, 5000);
    side.ring = {};
    if (random_.chance(50))
      side.ring = {random_.between(1, 5000), random_.between(1, 500), random_.between(0, 1'000'000),
                   random_.between(1, 100)};
    side.prices.clear();
    std::int64_t price = 0;
    for (std::int64_t i = random_.between(0, 5); i > 0; --i)
      side.prices.push_back(price += random_.between(1, 1000) << random_.between(0, 30));
  }

  void change_plan(plan::Plan& plan) {
    if (random_.chance(40)) {
      plan = random_.pick(c_.tried()).plan;
    } else if (plan.units.empty() || random_.chance(30)) {
      plan = test::random_plan(c_.step(), random_.next());
    } else {
      plan::Unit& unit = plan.units[random_.below(plan.units.size())];
      if (random_.chance(30))
        unit.preserve_rng = !unit.preserve_rng;
      else if (random_.chance(30))
        unit.early_stop = !unit.early_stop;
      else if (!unit.saved_ops.empty() && random_.chance(60))
        unit.saved_ops.erase(unit.saved_ops.begin() +
                             static_cast<std::ptrdiff_t>(random_.below(unit.saved_ops.size())));
      else
        plan.units.erase(plan.units.begin() + (&unit - plan.units.data()));
    }
  }

  const CertifiedCase& c_;
  bool has_casts_;
  test::Random& random_;
};

void corrupt_many(bool has_casts) {
  const std::int64_t count = std::getenv("TIDEMARK_CAMPAIGN") != nullptr ? 100'000 : 1'500;
  std::int64_t done = 0;
  std::int64_t untrue = 0;
  std::map<std::string, std::int64_t> refused;
  for (std::uint64_t seed = 1; done < count && !testing::Test::HasFailure(); ++seed) {
    const CertifiedCase c(seed, 400, has_casts);
    if (!c.is_small()) continue;
    test::Random random(seed);
    for (int round = 0; round < 4; ++round) {
      const std::int64_t room = std::max<std::int64_t>(random.pick(c.peaks()) - random.between(0, 1), 0);
      const planner::PlannerOptions options{.budget_bytes = room};
      const planner::PlanResult result = planner::plan_step(c.step(), c.cost(), options);
      const Certified made =
          make_certificate(c.step(), c.cost(), options, result, "test", test::plan_on_disk(c, result.plan, room).hash);
      if (!made.certificate) continue;
      for (int i = 0; i < 8; ++i, ++done) {
        const Corrupted bad = Corrupter(c, has_casts, random).corrupt(*made.certificate, result.plan, room);
        const PlanOnDisk disk = test::plan_on_disk(c, bad.plan, bad.room_bytes);
        verify::CertificateVerdict verdict;
        try {
          verdict = test::check(c, bad.certificate, bad.has_plan ? &disk : nullptr);
        } catch (const Error& error) {  // a pattern that matches nothing
          verdict.problem = error.what();
        }
        const bool expected = is_true(c, *made.certificate, bad);
        untrue += expected ? 0 : 1;
        if (verdict.holds) {
          EXPECT_TRUE(expected) << "seed " << seed << bad.what;
        } else if (expected) {
          // What is true is refused only where hints leave the check no way to see it, or where the model of the step
          // has a way that replays do not confirm: then a bound above that way's time is not proved, true or not.
          // One of two sides alone may have such a way, too.
          const auto is_alone = [](const verify::PartProof& part) { return part.sides.size() == 1; };
          const bool is_one_side =
              has_casts && std::any_of(bad.certificate.parts.begin(), bad.certificate.parts.end(), is_alone);
          const bool is_above_model = (made.certificate->claim == Claim::kBound || is_one_side) &&
                                      verdict.problem.find("there is a way") != std::string::npos;
          // With other options, the model may have a low path that replays do not confirm; and a claim about plans
          // with options that this plan does not have is none about this plan.
          const bool is_of_others = verdict.problem.find("other options than this one") != std::string::npos ||
                                    (bad.what.find(" space") != std::string::npos &&
                                     verdict.problem.find("are allowed") != std::string::npos);
          const bool is_told_why = is_above_model || is_of_others ||
                                   verdict.problem.find("a side that the step does not have") != std::string::npos ||
                                   verdict.problem.find("not over after") != std::string::npos ||
                                   verdict.problem.find("parts") != std::string::npos ||
                                   verdict.problem.find("the certificate says") != std::string::npos ||
                                   verdict.problem.find("matches nothing") != std::string::npos;
          ++refused[verdict.problem.substr(0, 40)];
          EXPECT_TRUE(is_told_why) << "seed " << seed << bad.what << ": " << verdict.problem;
        }
      }
    }
  }
  testing::Test::RecordProperty("done", std::to_string(done));
  std::string text = "true and refused for its hints:";
  for (const auto& [problem, times] : refused) text += "\n  " + std::to_string(times) + " x " + problem;
  SCOPED_TRACE(text);
  EXPECT_GT(untrue, done / 4);
  EXPECT_LT(untrue, done - done / 20);
}

TEST(Corruption, NothingUntruePassesAndNothingTrueIsRefused) { corrupt_many(false); }

// The certificate may name sides, which these steps have too few casts for.
TEST(Corruption, NorOfStepsWithCasts) { corrupt_many(true); }

// One byte of the file changed: an error, or the same certificate.
TEST(Corruption, AChangedByteIsNoticed) {
  const CertifiedCase c = [] {
    std::uint64_t seed = 1;
    while (!CertifiedCase(seed).is_small()) ++seed;
    return CertifiedCase(seed);
  }();
  const std::int64_t room = c.least_peak_bytes();
  const planner::PlannerOptions options{.budget_bytes = room};
  const planner::PlanResult result = planner::plan_step(c.step(), c.cost(), options);
  const Certified made = make_certificate(c.step(), c.cost(), options, result, "test", {});
  ASSERT_TRUE(made.certificate);
  const std::string text = verify::write_certificate(*made.certificate);
  test::Random random(1);
  for (int i = 0; i < 1000; ++i) {
    std::string bad = text;
    bad[random.below(bad.size())] = static_cast<char>(random.below(256));
    try {
      EXPECT_EQ(verify::read_certificate_text(bad, "bad"), *made.certificate);
    } catch (const Error&) {
      continue;
    }
  }
}

}  // namespace
}  // namespace tidemark::certify
