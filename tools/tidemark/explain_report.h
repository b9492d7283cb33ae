#pragma once

#include <string>
#include <vector>

#include "console.h"
#include "plan_report.h"
#include "tidemark/planner/explain.h"
#include "tidemark/planner/why.h"

namespace tidemark::cli {

// Questions of --why with their answers.
struct WhyAnswers {
  std::string pattern;
  std::vector<planner::WhyRow> rows;
};

// What `tidemark plan --explain` and `--why` have to say, before it is words.
struct ExplainReport {
  planner::Explanation explanation;
  std::vector<WhyAnswers> answers;
};

// Where binding moments are, what a GiB is worth, what is kept and recomputed for it, what no plan can go below.
std::string explain_text(const PlanReport& report, const planner::Explanation& explanation, const Console& console);
std::string why_text(const PlanReport& report, const std::vector<WhyAnswers>& answers, const Console& console);
Json explain_json(const PlanReport& report, const ExplainReport& explained);

// Where a moment is, in words: "addmm of layers.3.mlp, in backward, while it is recomputed".
std::string moment_text(const step::Step& step, const memory::Moment& moment);

// What would help where no plan can: said of the moment of the smallest peak.
std::string what_helps(planner::PeakPlace place, const memory::CategoryBytes& by_category);

}  // namespace tidemark::cli
