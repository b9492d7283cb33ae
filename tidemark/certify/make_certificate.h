#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tidemark/base/hash.h"
#include "tidemark/cost/step_cost.h"
#include "tidemark/planner/planner.h"
#include "tidemark/step/step.h"
#include "tidemark/verify/certificate.h"
#include "tidemark/verify/check_certificate.h"

namespace tidemark::certify {

// The certificate of what a search found. It is made after the search, from its result alone: prices at which a byte is
// worth its time, and then the check itself, which either comes to its end and is the proof, or is given up.

struct CertifyOptions {
  std::int64_t max_entries = verify::kMostEntries;  // that the check may make
};

struct Certified {
  std::optional<verify::Certificate> certificate;
  std::string reason;  // why there is none: a sentence without its period
};

// `plan_hash` is that of the plan's file; it does not matter when nothing fits.
// Requires: a result of plan_step with the same step, cost and options.
Certified make_certificate(const step::Step& step, const cost::StepCost& cost, const planner::PlannerOptions& options,
                           const planner::PlanResult& result, const std::string& device, const Hash128& plan_hash,
                           const CertifyOptions& limits = {});

}  // namespace tidemark::certify
