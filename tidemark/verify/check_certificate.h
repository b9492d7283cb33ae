#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tidemark/base/hash.h"
#include "tidemark/memory/workspace.h"
#include "tidemark/plan/plan_file.h"
#include "tidemark/planner/space.h"
#include "tidemark/step/step.h"
#include "tidemark/verify/certificate.h"

namespace tidemark::verify {

// Whether what a certificate claims is true, found out from the step, the times and the plan. The options and what they
// come to are derived from the step again (planner/space.h, planner/build_problem.h: that this is what a replay says of
// every plan is tested on its own); the proof is checked by code that the search has no part in: one pass over all
// paths with the certificate's prices as bounds (path_check.h), and the plan is replayed and its time added up
// (verify_plan.h, plan_time.h).

struct CheckInput {
  const step::Step& step;
  const planner::Times& times;
  const memory::WorkspaceTable* workspace = nullptr;
  const plan::PlanFile* plan = nullptr;  // that the certificate lies beside; none when nothing fits
  Hash128 plan_hash = {};
  std::optional<std::int64_t> device_rounding_bytes = {};  // what the device rounds sizes up to; none: not compared
};

struct CertificateVerdict {
  bool holds = false;
  std::string problem;       // the first thing that is wrong: a sentence without its period
  std::int64_t entries = 0;  // made
};

// No certificate gets more work done than this; making one counts by it, too.
inline constexpr std::int64_t kMostEntries = 50'000'000;

CertificateVerdict check_certificate(const Certificate& certificate, const CheckInput& input);

}  // namespace tidemark::verify
