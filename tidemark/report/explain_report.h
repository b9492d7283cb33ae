#pragma once

#include <string>
#include <vector>

#include "tidemark/planner/explain.h"
#include "tidemark/planner/why.h"
#include "tidemark/report/json.h"
#include "tidemark/report/plan_report.h"
#include "tidemark/report/text_layout.h"

namespace tidemark::report {

// Why a plan is as it is, in words: planner/explain.h and planner/why.h have the figures.

// Questions of --why with their answers.
struct WhyAnswers {
  std::string pattern;
  std::vector<planner::WhyRow> rows;
};

// What there is to explain, before it is words.
struct ExplainReport {
  planner::Explanation explanation;
  std::vector<WhyAnswers> answers;
};

// Explains the plan and answers questions about it; `options` are those it was made with.
ExplainReport explain_plan(const PlanReport& report, const planner::PlannerOptions& options,
                           const std::vector<std::string>& questions);

// Where binding moments are, what a GiB is worth, what is kept and recomputed for it, what no plan can go below.
std::string explain_text(const PlanReport& report, const planner::Explanation& explanation, const Style& style);
std::string why_text(const PlanReport& report, const std::vector<WhyAnswers>& answers, const Style& style);
Json explain_json(const PlanReport& report, const ExplainReport& explained);
// The same as text.
std::string explain_json_text(const PlanReport& report, const ExplainReport& explained);

// Where a moment is, in words: "addmm of layers.3.mlp, in backward, while it is recomputed".
std::string moment_text(const step::Step& step, const memory::Moment& moment);

// What would help where no plan can: said of the moment of the smallest peak.
std::string what_helps(planner::PeakPlace place, const memory::CategoryBytes& by_category);
// The same where the user's own options leave plans out, which comes first.
std::string what_wishes_leave_out(const PlanReport& report);

}  // namespace tidemark::report
