#include "certified_case.h"

#include <algorithm>
#include <set>

#include "tidemark/plan/event_index.h"
#include "tidemark/planner/facts.h"

namespace tidemark::test {

CertifiedCase::CertifiedCase(std::uint64_t seed, std::int64_t most_plans, bool has_casts)
    : training_(random_training(seed, {.light_backward = has_casts, .has_casts = has_casts})) {
  for (const std::int64_t ps : training_.times.op_ps) cost_.ops.push_back({.total_ps = ps});
  cost_.family.assign(cost_.ops.size(), cost::Family::kMatmul);
  cost_.bytes.assign(cost_.ops.size(), 0);
  cost_.region_ps = training_.times.region_ps;
  cost_.region_save_ps = training_.times.region_save_ps;
  cost_.region_rng_ps = training_.times.region_rng_ps;
  tried_ = try_all(training_.step, training_.times, most_plans);
}

std::vector<std::int64_t> CertifiedCase::peaks() const {
  std::set<std::int64_t> peaks;
  for (const Tried& one : tried_) peaks.insert(one.peak_bytes);
  return {peaks.begin(), peaks.end()};
}

std::int64_t CertifiedCase::least_ps(std::int64_t room_bytes) const {
  std::int64_t best = kNoPlan;
  for (const Tried& one : tried_)
    if (one.peak_bytes <= room_bytes) best = std::min(best, one.time_ps);
  return best;
}

std::int64_t CertifiedCase::least_peak_bytes() const {
  std::int64_t least = kNoPlan;
  for (const Tried& one : tried_) least = std::min(least, one.peak_bytes);
  return least;
}

PlanOnDisk plan_on_disk(const CertifiedCase& c, const plan::Plan& plan, std::int64_t room_bytes) {
  plan::PlanFacts facts = planner::facts_of_given(c.step(), c.cost(), plan, "test", {});
  facts.budget_bytes = room_bytes;
  const plan::PortablePlan portable = plan::describe(c.step(), plan, facts);
  return {{plan, facts, portable.fingerprint}, plan::hash_of(portable)};
}

verify::CertificateVerdict check(const CertifiedCase& c, const verify::Certificate& certificate,
                                 const PlanOnDisk* plan) {
  return verify::check_certificate(certificate, {.step = c.step(),
                                                 .times = c.times(),
                                                 .workspace = nullptr,
                                                 .plan = plan != nullptr ? &plan->file : nullptr,
                                                 .plan_hash = plan != nullptr ? plan->hash : Hash128()});
}

}  // namespace tidemark::test
