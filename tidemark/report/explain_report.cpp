#include "tidemark/report/explain_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tidemark/base/bytes.h"
#include "tidemark/base/duration.h"
#include "tidemark/report/cost_text.h"
#include "tidemark/report/text_layout.h"
#include "tidemark/step/dump.h"
#include "tidemark/step/op_name.h"

namespace tidemark::report {

namespace {

using namespace step;
using planner::Explanation;
using planner::GroupReason;
using planner::GroupRow;
using planner::PeakPlace;
using planner::WhyKind;
using planner::WhyRow;

constexpr std::size_t kMostMoments = 3;
constexpr std::size_t kMostGroups = 4;  // of those kept, and of those recomputed
constexpr std::size_t kMostAnswers = 12;
constexpr std::size_t kNameColumns = 52;

std::string unit_of_bytes(std::int64_t bytes) {
  if (bytes >= std::int64_t{1} << 30) return "GiB";
  if (bytes >= std::int64_t{1} << 20) return "MiB";
  return bytes >= 1024 ? "KiB" : "byte";
}

std::string moments_text(const PlanReport& report, const Explanation& explanation, const Style& style) {
  const std::string text = "\n" + style.heading("where memory is highest") + "\n";
  Table table(">><");
  for (std::size_t i = 0; i < std::min(explanation.moments.size(), kMostMoments); ++i) {
    const planner::BindingMoment& moment = explanation.moments[i];
    const std::string left = moment.slack_bytes < 0 ? format_bytes(-moment.slack_bytes) + " over"
                                                    : format_bytes(moment.slack_bytes) + " below the budget";
    std::string words = moment_text(*report.step, moment.moment);
    if (moment.count > 1) words += fmt::format(" ({} alike)", moment.count);
    table.row({format_bytes(moment.moment.total_bytes), left, words});
  }
  return text + table.text(2);
}

std::string price_text(const PlanReport& report, const Explanation& explanation, const Style& style) {
  if (!explanation.has_price) return "";
  const planner::Price& price = explanation.price;
  const std::string unit = unit_of_bytes(price.step_bytes);
  const auto words = [&](std::int64_t ps, bool is_proved) {
    return fmt::format("{}, {} of the step{}", format_duration(ps), percent(ps, report.cost.all.time_ps),
                       is_proved ? "" : " (between the best plans found, not proved)");
  };
  const std::string text = "\n" + style.heading("what memory is worth") + "\n";
  Table table("<<");
  table.row({fmt::format("1 {} more", unit), "spares " + words(price.more_spares_ps, price.is_more_proved)});
  table.row({fmt::format("1 {} less", unit), price.can_be_less
                                                 ? "costs " + words(price.less_costs_ps, price.is_less_proved)
                                                 : std::string("is not possible with any plan")});
  return text + table.text(2);
}

std::string_view reason_text(GroupReason reason, bool is_saved) {
  switch (reason) {
    case GroupReason::kChosen:
      return is_saved ? "kept" : "recomputed";
    case GroupReason::kMustSave:
      return "kept: must not run twice";
    case GroupReason::kAskedFor:
      return is_saved ? "kept as asked" : "recomputed as asked";
    case GroupReason::kView:
      return "recomputed: makes nothing of its own";
    case GroupReason::kChanged:
      return "recomputed: changed in place later";
    case GroupReason::kNotReached:
      return "not run again: the recompute ends before it";
  }
  return "";
}

// Rows that say something about prices: what a choice was made for, in which bytes and time are not both nothing.
std::vector<const GroupRow*> chosen_rows(const Explanation& explanation, bool is_saved) {
  std::vector<const GroupRow*> rows;
  for (const GroupRow& row : explanation.groups)
    if (row.is_saved == is_saved && row.bytes_each > 0 && row.ps_each > 0) rows.push_back(&row);
  // Kept ones from the least worth, recomputed ones from the most: the choice lies between.
  if (is_saved) std::reverse(rows.begin(), rows.end());
  return rows;
}

std::string groups_text(const Explanation& explanation, const Style& style) {
  const std::vector<const GroupRow*> kept = chosen_rows(explanation, true);
  const std::vector<const GroupRow*> again = chosen_rows(explanation, false);
  if (kept.empty() && again.empty()) return "";
  const std::string text = "\n" + style.heading("what is kept, and what is recomputed for its memory") + "\n";
  Table table("<<>>>>");
  table.row({"", "", "ops", "each takes", "spares", "per GiB"});
  const auto add = [&](const std::vector<const GroupRow*>& rows, std::string_view word) {
    for (std::size_t i = 0; i < std::min(rows.size(), kMostGroups); ++i) {
      const GroupRow& row = *rows[i];
      std::string name = row.units.empty() ? std::string("(the whole model)") : row.units;
      if (!row.module.empty()) name += "." + row.module;
      name = printable(row.ops) + " of " + printable(name);
      if (row.reason != GroupReason::kChosen) name += fmt::format(" ({})", reason_text(row.reason, row.is_saved));
      table.row({i == 0 ? std::string(word) : "", elide(name, kNameColumns), format_count(row.count),
                 format_bytes(row.bytes_each), format_duration(row.ps_each), format_duration(row.ps_per_gib())});
    }
    if (rows.size() > kMostGroups)
      table.row({"", fmt::format("and {} more kinds, which --json lists", rows.size() - kMostGroups), "", "", "", ""});
  };
  add(kept, "kept");
  add(again, "again");
  return text + table.text(2);
}

std::string_view exclusion_text(planner::Exclusion reason) {
  switch (reason) {
    case planner::Exclusion::kNone:
      return "";
    case planner::Exclusion::kNotForward:
      return "not in a forward pass";
    case planner::Exclusion::kBackwardInside:
      return "a backward runs inside";
    case planner::Exclusion::kNoSaves:
      return "autograd keeps nothing of them";
    case planner::Exclusion::kNested:
      return "the model checkpoints inside them itself";
    case planner::Exclusion::kCannotSave:
      return "an op that must not run twice cannot be saved";
    case planner::Exclusion::kPattern:
      return "left out by --units or --not-units";
    case planner::Exclusion::kOverwritten:
      return "what they read is written to in place before their recompute";
    case planner::Exclusion::kSeveralBackwards:
      return "more than one backward needs them, and each would recompute them";
  }
  return "";
}

std::string excluded_text(const PlanReport& report, const Explanation& explanation) {
  std::string text = fmt::format("{} may be units", count_of(report.result.candidate_count, "module call"));
  for (const planner::ExcludedCalls& calls : explanation.excluded)
    text += fmt::format("; {} may not: {} ({})", format_count(calls.count), exclusion_text(calls.reason),
                        printable(fmt::format("{}", fmt::join(calls.examples, ", "))));
  return text;
}

// What the smallest peak is held by, and whether recomputing could do anything about it.
std::string floor_text(const PlanReport& report, const Explanation& explanation) {
  const std::int64_t room = report.budget_bytes - report.reserve_bytes;
  std::string text =
      fmt::format("no plan {}{}below {}: {}", report.wishes.empty() ? "" : fmt::format("with {} ", report.wishes),
                  report.result.is_smallest_proved ? "goes " : "is known to go ", format_bytes(explanation.floor_bytes),
                  moment_text(*report.step, explanation.floor.moment));
  // Near the end of what recomputing can do, something else is needed soon; a plan that does not fit says so itself.
  const bool is_near = explanation.floor_bytes * 20 > room * 19 && explanation.floor_bytes <= room;
  if (is_near && report.result.termination != planner::Termination::kFits)
    text += ". " + (report.wishes.empty() ? what_helps(explanation.floor.place, explanation.floor_by_category)
                                          : what_wishes_leave_out(report));
  return text;
}

std::string what_if_text(const PlanReport& report, const WhyRow& row, std::string_view change) {
  if (!row.opposite) return "";
  const planner::WhatIf& other = *row.opposite;
  const std::int64_t room = report.budget_bytes - report.reserve_bytes;
  const std::int64_t more = other.recompute_ps - report.result.recompute_ps;
  const std::string cost = more == 0  ? std::string("the same time")
                           : more > 0 ? format_duration(more) + " more"
                                      : format_duration(-more) + " less";
  const std::string fit = other.fits ? "fits" : fmt::format("{} over", format_bytes(other.peak_bytes - room));
  return fmt::format("; {}: peak {} ({}), {}", change, format_bytes(other.peak_bytes), fit, cost);
}

std::string answer_text(const PlanReport& report, const WhyRow& row) {
  const bool is_many = row.count > 1;
  const std::string units = printable(row.units.empty() ? std::string("the whole model") : row.units);
  switch (row.kind) {
    case WhyKind::kUnit:
      return fmt::format("checkpointed: keeps {}, runs {} of ops again{}", format_bytes(row.bytes_each),
                         format_duration(row.ps_each),
                         what_if_text(report, row, is_many ? "without these units" : "without this unit"));
    case WhyKind::kInsideUnit:
      return fmt::format("inside the unit {}: units do not nest", units);
    case WhyKind::kHoldsUnits:
      return fmt::format("units lie inside it ({}){}", units,
                         what_if_text(report, row, "as a unit that recomputes all"));
    case WhyKind::kExcluded:
      return fmt::format("cannot be a unit: {}", exclusion_text(row.exclusion));
    case WhyKind::kNotNeeded:
      return "not needed: the plan fits without it" + what_if_text(report, row, "as a unit that recomputes all");
    case WhyKind::kNoUnit:
      return "in no unit: nothing of it is recomputed";
    case WhyKind::kSaved:
    case WhyKind::kRecomputed:
      break;
  }
  const bool is_saved = row.kind == WhyKind::kSaved;
  std::string text(reason_text(row.reason, is_saved));
  if (row.reason != GroupReason::kNotReached && row.bytes_each > 0)
    text += fmt::format(": {} each, for {}", format_bytes(row.bytes_each), format_duration(row.ps_each));
  if (!row.with.empty()) text += fmt::format(", together with {}", row.with);
  text += what_if_text(report, row, is_saved ? "recomputed" : "kept");
  return text;
}

Json moment_json(const PlanReport& report, const planner::BindingMoment& moment) {
  return {{"bytes", moment.moment.total_bytes},
          {"slack_bytes", moment.slack_bytes},
          {"place", planner::name_of(moment.place)},
          {"at", moment_text(*report.step, moment.moment)},
          {"alike", moment.count}};
}

}  // namespace

ExplainReport explain_plan(const PlanReport& report, const planner::PlannerOptions& wishes,
                           const std::vector<std::string>& questions) {
  planner::PlannerOptions exact = wishes;  // whoever made the plan, it is compared with the best ones
  exact.method = {};
  const planner::PreparedStep prepared(*report.step, report.cost, exact);
  const std::int64_t room_bytes = planner::room_of(wishes);
  ExplainReport explained;
  for (const std::string& question : questions)
    explained.answers.push_back({question, planner::why(prepared, report.result, question, room_bytes)});
  explained.explanation = planner::explain(
      prepared, report.result,
      {.room_bytes = room_bytes, .max_work = wishes.max_work, .is_searched = report.method == planner::Method::kExact});
  return explained;
}

std::string moment_text(const Step& step, const memory::Moment& moment) {
  if (moment.event == memory::kNoEvent) return "before the step begins";
  std::string text;
  if (moment.op.has_value()) text = std::string(op_family(step.text(step[moment.op].name)));
  if (moment.call.has_value()) {
    const std::string fqn = step.fqn(step[moment.call].module);
    if (!fqn.empty()) text += (text.empty() ? "" : " of ") + printable(fqn);
  }
  if (moment.pass.has_value())
    text += fmt::format("{}in {}", text.empty() ? "" : ", ", name_of(step[moment.pass].kind));
  if (moment.unit != memory::kNoUnit) text += ", while it is recomputed";
  return text;
}

std::string what_helps(PeakPlace place, const memory::CategoryBytes& by_category) {
  const std::int64_t temporary = by_category[static_cast<std::size_t>(memory::Category::kTemporary)];
  const std::int64_t state = by_category[static_cast<std::size_t>(memory::Category::kOptimizerState)];
  switch (place) {
    case PeakPlace::kStart:
    case PeakPlace::kOptimizer: {
      std::string text = "Recomputing cannot help: the peak is in what the optimizer holds. ";
      if (place == PeakPlace::kOptimizer && temporary > 0)
        text +=
            fmt::format("A fused one (--form fused) would not need its {} of temporaries; ", format_bytes(temporary));
      text += state > 0 ? "one with less state (--optimizer sgd), smaller types (--precision) or sharding would help"
                        : "smaller types (--precision) or sharding would help";
      return text;
    }
    case PeakPlace::kHead:
      return "Recomputing cannot help: the peak is in the loss and what leads to it. A loss in chunks or fused with "
             "the "
             "last layer, a smaller batch or a shorter sequence would help";
    case PeakPlace::kRecompute:
    case PeakPlace::kBlock:
      return "One block alone takes that much: a smaller batch, a shorter sequence or more memory would help";
    case PeakPlace::kOther:
      return "A smaller batch, a shorter sequence or more memory would help";
  }
  return "";
}

std::string what_wishes_leave_out(const PlanReport& report) {
  const std::vector<planner::PolicyFigures>& policies = report.result.policies;
  const auto smallest = std::min_element(policies.begin(), policies.end(),
                                         [](const auto& a, const auto& b) { return a.peak_bytes < b.peak_bytes; });
  std::string text = fmt::format("That is with {}: without, more may be recomputed", report.wishes);
  if (smallest != policies.end() && smallest->peak_bytes < report.result.smallest_peak_bytes)
    text += fmt::format("; the policy {} comes to {}", plan::policy_text(smallest->policy),
                        format_bytes(smallest->peak_bytes));
  return text;
}

std::string explain_text(const PlanReport& report, const Explanation& explanation, const Style& style) {
  std::string text = moments_text(report, explanation, style) + price_text(report, explanation, style) +
                     groups_text(explanation, style);
  text += "\n" + style.heading("what else there is") + "\n";
  text += "  " + wrap(floor_text(report, explanation), 2);
  text += "  " + wrap(excluded_text(report, explanation), 2);
  const planner::SolveStatistics& search = report.result.statistics;
  if (search.passes > 0)
    text += fmt::format("  searched in {}, {} entries\n",
                        search.passes == 1 ? std::string("1 pass") : format_count(search.passes) + " passes",
                        format_count(search.work));
  return text + unpriced_section(report, style);
}

std::string why_text(const PlanReport& report, const std::vector<WhyAnswers>& answers, const Style& style) {
  std::string text;
  for (const WhyAnswers& answer : answers) {
    text += "\n" + style.heading("why " + printable(answer.pattern)) + "\n";
    for (std::size_t i = 0; i < std::min(answer.rows.size(), kMostAnswers); ++i) {
      const WhyRow& row = answer.rows[i];
      const std::string times = row.count > 1 ? fmt::format(" ({})", format_count(row.count)) : "";
      text += "  " + wrap(fmt::format("{}{}: {}", printable(row.subject), times, answer_text(report, row)), 4);
    }
    if (answer.rows.size() > kMostAnswers)
      text += fmt::format("  and {} more, which --json lists\n", answer.rows.size() - kMostAnswers);
  }
  return text;
}

Json explain_json(const PlanReport& report, const ExplainReport& explained) {
  const Explanation& explanation = explained.explanation;
  Json moments = Json::array();
  for (const planner::BindingMoment& moment : explanation.moments) moments.push_back(moment_json(report, moment));
  Json groups = Json::array();
  for (const GroupRow& row : explanation.groups)
    groups.push_back({{"units", row.units},
                      {"module", row.module},
                      {"ops", row.ops},
                      {"saved", row.is_saved},
                      {"reason", planner::name_of(row.reason)},
                      {"count", row.count},
                      {"bytes_each", row.bytes_each},
                      {"ps_each", row.ps_each},
                      {"ms_per_gib", ms(row.ps_per_gib())}});
  Json excluded = Json::array();
  for (const planner::ExcludedCalls& calls : explanation.excluded)
    excluded.push_back({{"reason", planner::kExclusionNames[static_cast<std::size_t>(calls.reason)]},
                        {"calls", calls.count},
                        {"examples", calls.examples}});
  Json json{{"moments", moments},
            {"floor", moment_json(report, explanation.floor)},
            {"price", Json()},
            {"groups", groups},
            {"excluded", excluded},
            {"why", Json::array()},
            {"unpriced", unpriced_json(*report.step, report.cost.unpriced)}};
  if (explanation.has_price)
    json["price"] = {{"step_bytes", explanation.price.step_bytes},
                     {"more_spares_ms", ms(explanation.price.more_spares_ps)},
                     {"more_proved", explanation.price.is_more_proved},
                     {"less_possible", explanation.price.can_be_less},
                     {"less_costs_ms", ms(explanation.price.less_costs_ps)},
                     {"less_proved", explanation.price.is_less_proved}};
  for (const WhyAnswers& answers : explained.answers)
    for (const WhyRow& row : answers.rows) {
      Json one{{"pattern", answers.pattern},
               {"subject", row.subject},
               {"kind", planner::name_of(row.kind)},
               {"exclusion", planner::kExclusionNames[static_cast<std::size_t>(row.exclusion)]},
               {"reason", planner::name_of(row.reason)},
               {"units", row.units},
               {"with", row.with},
               {"count", row.count},
               {"bytes_each", row.bytes_each},
               {"ps_each", row.ps_each},
               {"opposite", Json()}};
      if (row.opposite)
        one["opposite"] = {{"peak_bytes", row.opposite->peak_bytes},
                           {"recompute_ms", ms(row.opposite->recompute_ps)},
                           {"fits", row.opposite->fits}};
      json["why"].push_back(std::move(one));
    }
  return json;
}

std::string explain_json_text(const PlanReport& report, const ExplainReport& explained) {
  return explain_json(report, explained).dump();
}

}  // namespace tidemark::report
