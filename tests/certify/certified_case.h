#pragma once

#include <cstdint>
#include <vector>

#include "../planner/brute_force.h"
#include "../support/random_training.h"
#include "tidemark/base/hash.h"
#include "tidemark/cost/step_cost.h"
#include "tidemark/plan/plan_file.h"
#include "tidemark/planner/planner.h"
#include "tidemark/verify/check_certificate.h"

namespace tidemark::test {

// A random step small enough to try every plan, and what all of them come to: an oracle for claims about it.
class CertifiedCase {
 public:
  explicit CertifiedCase(std::uint64_t seed, std::int64_t most_plans = 1500, bool has_casts = false);

  bool is_small() const { return !tried_.empty(); }  // false: too many plans to try
  const step::Step& step() const { return training_.step; }
  const planner::Times& times() const { return training_.times; }
  const cost::StepCost& cost() const { return cost_; }
  const std::vector<Tried>& tried() const { return tried_; }
  std::vector<std::int64_t> peaks() const;  // of all plans, ascending, each once
  // The least time of the plans whose peak is at most so much; kNoPlan when there is none.
  static constexpr std::int64_t kNoPlan = std::int64_t{1} << 62;
  std::int64_t least_ps(std::int64_t room_bytes) const;
  std::int64_t least_peak_bytes() const;

 private:
  RandomTraining training_;
  cost::StepCost cost_;
  std::vector<Tried> tried_;
};

// A plan's file without the file.
struct PlanOnDisk {
  plan::PlanFile file;
  Hash128 hash;
};
PlanOnDisk plan_on_disk(const CertifiedCase& c, const plan::Plan& plan, std::int64_t room_bytes);

verify::CertificateVerdict check(const CertifiedCase& c, const verify::Certificate& certificate,
                                 const PlanOnDisk* plan);

}  // namespace tidemark::test
