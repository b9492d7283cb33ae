#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "certified_case.h"
#include "tidemark/certify/make_certificate.h"
#include "tidemark/verify/certificate_file.h"

// Certificates of random small steps, with all plans tried as the judge of what is true.

namespace tidemark::certify {
namespace {

using planner::Termination;
using test::CertifiedCase;
using test::PlanOnDisk;
using verify::Certificate;
using verify::Claim;

std::uint64_t seed_count() { return std::getenv("TIDEMARK_CAMPAIGN") != nullptr ? 20'000 : 150; }

struct Planned {
  planner::PlanResult result;
  PlanOnDisk plan;
  Certified made;
};

Planned plan_and_certify(const CertifiedCase& c, std::int64_t room_bytes) {
  const planner::PlannerOptions options{.budget_bytes = room_bytes};
  Planned p;
  p.result = planner::plan_step(c.step(), c.cost(), options);
  p.plan = test::plan_on_disk(c, p.result.plan, room_bytes);
  p.made = make_certificate(c.step(), c.cost(), options, p.result, "test", p.plan.hash);
  return p;
}

void expect_refused(const CertifiedCase& c, const Certificate& certificate, const PlanOnDisk* plan,
                    const std::string& what, std::uint64_t seed) {
  const verify::CertificateVerdict verdict = test::check(c, certificate, plan);
  EXPECT_FALSE(verdict.holds) << what << ", seed " << seed;
  EXPECT_NE(verdict.problem, "") << what << ", seed " << seed;
}

// The same proof with a bound that is higher or lower by some.
Certificate with_bound(Certificate certificate, std::int64_t more_ps) {
  certificate.bound_ps += more_ps;
  if (certificate.parts.empty()) certificate.parts.emplace_back();
  certificate.parts.back().bound_ps += more_ps;
  for (verify::PartProof& part : certificate.parts) part.entries = verify::kMostEntries;
  return certificate;
}

struct Counts {
  std::int64_t optimal = 0;
  std::int64_t infeasible = 0;
  std::int64_t proper = 0;  // with something to prove
};

Counts check_all(bool has_casts) {
  Counts counts;
  std::optional<CertifiedCase> other;
  for (std::uint64_t seed = 1; seed <= seed_count() && !testing::Test::HasFailure(); ++seed) {
    CertifiedCase c(seed, 1500, has_casts);
    if (!c.is_small()) continue;
    std::vector<std::int64_t> rooms;
    for (const std::int64_t peak : c.peaks()) rooms.insert(rooms.end(), {peak - 1, peak});
    for (const std::int64_t room : rooms) {
      if (room < 0) continue;
      const Planned p = plan_and_certify(c, room);
      const std::int64_t best = c.least_ps(room);
      if (p.result.termination == Termination::kInfeasible && p.made.certificate) {
        ++counts.infeasible;
        const Certificate& good = *p.made.certificate;
        EXPECT_EQ(good.claim, Claim::kInfeasible);
        EXPECT_EQ(test::check(c, good, nullptr).problem, "") << "seed " << seed;
        EXPECT_LE(good.least_peak_bytes, c.least_peak_bytes()) << "seed " << seed;
        for (const std::int64_t more : {-1, 1}) {
          Certificate bad = good;
          bad.least_peak_bytes += more;
          expect_refused(c, bad, nullptr, "another smallest peak", seed);
        }
        Certificate feasible = good;
        feasible.room_bytes = c.least_peak_bytes();
        feasible.least_peak_bytes = c.least_peak_bytes() + 1;
        expect_refused(c, feasible, nullptr, "nothing fits where something does", seed);
        expect_refused(c, good, &p.plan, "nothing fits, and here is a plan", seed);
        if (other) expect_refused(*other, good, nullptr, "another step's", seed);
        continue;
      }
      if (p.result.termination != Termination::kOptimal && p.result.termination != Termination::kFits) continue;
      // Proved by replays of all that the model holds cheaper: no certificate has that.
      if (p.made.reason == "the model has a faster way, which no replay confirms") continue;
      ++counts.optimal;
      EXPECT_TRUE(p.made.certificate) << "seed " << seed << " room " << room << ": " << p.made.reason;
      if (!p.made.certificate) return counts;
      const Certificate& good = *p.made.certificate;
      EXPECT_EQ(good.claim, Claim::kOptimal) << "seed " << seed;
      EXPECT_EQ(good.bound_ps, best) << "seed " << seed << " room " << room;
      EXPECT_EQ(test::check(c, good, &p.plan).problem, "") << "seed " << seed << " room " << room;
      EXPECT_EQ(verify::read_certificate_text(verify::write_certificate(good), "again"), good);
      expect_refused(c, with_bound(good, 1), &p.plan, "a better bound than is true", seed);
      if (best > 0) {
        ++counts.proper;
        Certificate lower = with_bound(good, -1);
        if (good.parts.back().bound_ps > 0) {
          expect_refused(c, lower, &p.plan, "optimal below the plan's own time", seed);
          lower.claim = Claim::kBound;
          EXPECT_EQ(test::check(c, lower, &p.plan).problem, "") << "a lower bound is true, seed " << seed;
        }
      }
      for (const std::int64_t more : {-1, 1}) {
        Certificate bad = good;
        bad.room_bytes += more;
        expect_refused(c, bad, &p.plan, "another room than the plan's", seed);
      }
      Certificate nothing = good;
      nothing.claim = Claim::kInfeasible;
      nothing.plan.reset();
      nothing.least_peak_bytes = room + 1;
      expect_refused(c, nothing, nullptr, "nothing fits where something does", seed);
      Certificate times = good;
      ++times.times.low;
      expect_refused(c, times, &p.plan, "other times", seed);
      if (other) expect_refused(*other, good, &p.plan, "another step's", seed);
    }
    other.emplace(std::move(c));
  }
  return counts;
}

TEST(Certificate, HoldsForWhatIsTrueAndForNothingElse) {
  const Counts counts = check_all(false);
  EXPECT_GT(counts.optimal, 150);
  EXPECT_GT(counts.proper, 80);
  EXPECT_GT(counts.infeasible, 30);
}

// Casts of weights that stay until the forward ends: few of them, so that all are tried both ways.
TEST(Certificate, HoldsForStepsWithCasts) {
  const Counts counts = check_all(true);
  EXPECT_GT(counts.optimal, 150);
  EXPECT_GT(counts.proper, 80);
  EXPECT_GT(counts.infeasible, 30);
}

// A room of one byte more with a plan of that room: true only where the byte makes no difference.
TEST(Certificate, IsForOneRoom) {
  std::int64_t wrong = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    const CertifiedCase c(seed);
    if (!c.is_small()) continue;
    for (const std::int64_t peak : c.peaks()) {
      const std::int64_t room = peak - 1;
      if (c.least_ps(room) == CertifiedCase::kNoPlan) continue;
      const Planned p = plan_and_certify(c, room);
      if (!p.made.certificate || p.result.termination != Termination::kOptimal) continue;
      const PlanOnDisk plan = test::plan_on_disk(c, p.result.plan, peak);
      Certificate more = *p.made.certificate;
      more.room_bytes = peak;
      more.plan = plan.hash;
      for (verify::PartProof& part : more.parts) part.entries = verify::kMostEntries;
      const bool is_true = c.least_ps(peak) == more.bound_ps;
      wrong += is_true ? 0 : 1;
      EXPECT_EQ(test::check(c, more, &plan).holds, is_true) << "seed " << seed << " peak " << peak;
    }
  }
  EXPECT_GT(wrong, 20);
}

TEST(Certificate, IsTheSameEveryTime) {
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const CertifiedCase c(seed);
    if (!c.is_small()) continue;
    const std::int64_t room = c.peaks()[c.peaks().size() / 2];
    const Planned one = plan_and_certify(c, room);
    const Planned two = plan_and_certify(c, room);
    if (!one.made.certificate) continue;
    ++compared;
    ASSERT_TRUE(two.made.certificate);
    EXPECT_EQ(verify::write_certificate(*one.made.certificate), verify::write_certificate(*two.made.certificate));
  }
  EXPECT_GT(compared, 10);
}

// Rounding is the device's, not the certificate's: else rounding far enough would prove that nothing fits.
TEST(Certificate, RoundsAsTheDeviceDoes) {
  const CertifiedCase c(1, 1500, false);
  const planner::PlannerOptions options{.budget_bytes = 1, .against = planner::Against::kRounded, .rounding_bytes = 64};
  const planner::PlanResult result = planner::plan_step(c.step(), c.cost(), options);
  ASSERT_EQ(result.termination, Termination::kInfeasible);
  const Certified made = make_certificate(c.step(), c.cost(), options, result, "test", {});
  ASSERT_TRUE(made.certificate);
  const auto problem_on = [&](std::optional<std::int64_t> rounding_bytes) {
    return verify::check_certificate(*made.certificate,
                                     {.step = c.step(), .times = c.times(), .device_rounding_bytes = rounding_bytes})
        .problem;
  };
  EXPECT_EQ(problem_on(64), "");
  EXPECT_EQ(problem_on(std::nullopt), "");
  EXPECT_EQ(problem_on(32), "the certificate is for sizes rounded up to 64 B, and the device rounds them up to 32 B");
}

// A plan of one device beside a proof with the times of another.
TEST(Certificate, IsAboutThePlansDevice) {
  const CertifiedCase c(1, 1500, false);
  const Planned p = plan_and_certify(c, c.peaks().back());
  ASSERT_TRUE(p.made.certificate);
  Certificate other = *p.made.certificate;
  EXPECT_EQ(test::check(c, other, &p.plan).problem, "");
  other.device = "other";
  EXPECT_EQ(test::check(c, other, &p.plan).problem, "the certificate is about another device than the plan");
}

}  // namespace
}  // namespace tidemark::certify
