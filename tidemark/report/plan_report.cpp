#include "tidemark/report/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "tidemark/base/bytes.h"
#include "tidemark/base/duration.h"
#include "tidemark/memory/replay.h"
#include "tidemark/plan/event_index.h"
#include "tidemark/report/cost_text.h"
#include "tidemark/report/explain_report.h"
#include "tidemark/report/space_text.h"
#include "tidemark/report/text_layout.h"
#include "tidemark/step/dump.h"
#include "tidemark/step/numbered_names.h"
#include "tidemark/step/op_name.h"

namespace tidemark::report {

namespace {

using namespace step;
using planner::PlanResult;
using planner::Termination;

constexpr std::size_t kMostUnits = 12;   // rows of what is checkpointed
constexpr std::size_t kFewUnits = 4;     // when more follows
constexpr std::size_t kMostHolders = 3;  // categories of the peak

// What a unit does, told so that equal layers say the same.
struct UnitText {
  std::string saved;  // "2 mm, 1 flash_attention"
  std::int64_t again_ops = 0;
  std::int64_t time_ps = 0;    // what the unit adds to the step in all
  std::int64_t around_ps = 0;  // of that, the checkpoint's own

  friend auto operator<=>(const UnitText&, const UnitText&) = default;
};

UnitText describe(const PlanReport& report, const plan::EventIndex& index, const std::vector<std::uint8_t>& is_unpacked,
                  const plan::Unit& unit) {
  const Step& step = *report.step;
  UnitText text;
  std::map<std::string_view, std::int64_t> saved;
  const plan::EventRange region = index.regions[unit.call.index()];
  std::uint32_t stop = region.end;
  bool is_recomputed = false;
  text.around_ps = report.cost.region_ps + (unit.preserve_rng ? report.cost.region_rng_ps : 0);
  for (std::uint32_t at = region.begin; at < region.end; ++at) {
    const Event& event = step.tables().events[at];
    if (event.kind != EventKind::kPack || !step[SaveId(event.id)].hooked) continue;
    if (unit.early_stop) stop = at + 1;
    text.around_ps += report.cost.region_save_ps;
    is_recomputed = is_recomputed || is_unpacked[event.id] != 0;
  }
  text.time_ps = text.around_ps;
  for (std::uint32_t at = region.begin; at < region.end; ++at) {
    const Event& event = step.tables().events[at];
    if (event.kind != EventKind::kBegin) continue;
    const OpId op(event.id);
    if (unit.decision(op) == plan::Decision::kSave) {
      ++saved[op_family(step.text(step[op].name))];
    } else if (is_recomputed && at < stop) {
      ++text.again_ops;
      text.time_ps += report.cost.ops[op.index()].total_ps;
    }
  }
  for (const auto& [name, count] : saved) {
    if (!text.saved.empty()) text.saved += ", ";
    text.saved += count == 1 ? std::string(name) : fmt::format("{} {}", count, name);
  }
  if (text.saved.empty()) text.saved = "nothing";
  return text;
}

// Equal layers, in the order of their first ones.
struct UnitRow {
  std::string modules;
  std::size_t first = 0;  // of the plan's units
  std::int64_t count = 0;
  UnitText each;
};

std::vector<UnitRow> rows_of_units(const PlanReport& report) {
  const Step& step = *report.step;
  const plan::EventIndex index = plan::index_events(step);
  std::vector<std::uint8_t> is_unpacked(step.tables().saves.size(), 0);
  for (const Event& event : step.tables().events)
    if (event.kind == EventKind::kUnpack) is_unpacked[event.id] = 1;
  struct Equal {
    std::vector<std::size_t> units;
    std::vector<std::vector<std::int64_t>> numbers;
  };
  std::map<std::pair<std::string, UnitText>, Equal> equal;
  const std::vector<plan::Unit>& units = report.result.plan.units;
  for (std::size_t i = 0; i < units.size(); ++i) {
    NumberedName name = split_numbers(step.fqn(step[units[i].call].module));
    Equal& together = equal[{std::move(name.pattern), describe(report, index, is_unpacked, units[i])}];
    together.units.push_back(i);
    together.numbers.push_back(std::move(name.numbers));
  }
  std::vector<UnitRow> rows;
  for (const auto& [kind, together] : equal)
    for (const NamesTogether& names : fold_names(kind.first, together.numbers))
      rows.push_back({.modules = kind.first.empty() ? "(the whole model)" : names.text,
                      .first = together.units[names.members.front()],
                      .count = static_cast<std::int64_t>(names.members.size()),
                      .each = kind.second});
  std::sort(rows.begin(), rows.end(), [](const UnitRow& a, const UnitRow& b) { return a.first < b.first; });
  return rows;
}

// The rows add up to what recomputing takes.
std::string units_text(const PlanReport& report) {
  const std::vector<UnitRow> rows = rows_of_units(report);
  Table table("<>>><");
  table.row({"module", "calls", "ops again", "each", "saved ops"});
  const std::size_t most = report.is_short ? kFewUnits : kMostUnits;
  std::int64_t around_ps = 0;
  std::int64_t more_ps = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const UnitRow& row = rows[i];
    around_ps += row.count * row.each.around_ps;
    if (i >= most) {
      more_ps += row.count * row.each.time_ps;
      continue;
    }
    table.row({elide(printable(row.modules), 40), format_count(row.count), format_count(row.each.again_ops),
               format_duration(row.each.time_ps), row.each.saved});
  }
  std::string text = table.text(2);
  if (rows.size() > most)
    text += fmt::format("  and {} more {} of units, {} in all\n", rows.size() - most,
                        rows.size() - most == 1 ? "kind" : "kinds", format_duration(more_ps));
  return text +
         fmt::format("  of that, {} for the checkpoints themselves, the rest for ops\n", format_duration(around_ps));
}

std::string smallest_text(const PlanReport& report) {
  return fmt::format("the smallest peak that any plan {}reaches is {}{}",
                     report.wishes.empty() ? "" : fmt::format("with {} ", report.wishes),
                     format_bytes(report.result.smallest_peak_bytes),
                     report.result.is_smallest_proved ? "" : ", as far as is known");
}

std::string verdict(const PlanReport& report) {
  const PlanResult& result = report.result;
  switch (result.termination) {
    case Termination::kFits:
      return "it fits as it is: nothing needs to be recomputed";
    case Termination::kOptimal:
      return "it fits with this plan, and no plan that fits is cheaper (proved)";
    case Termination::kFeasible:
      if (result.bound_ps == 0)
        return fmt::format(
            "it fits with this plan, which {} chose; how much cheaper another is, it does not say",
            report.method == planner::Method::kExact ? "a simple policy" : planner::name_of(report.method));
      return fmt::format("it fits with this plan; the cheapest one takes at least {} (gap {})",
                         format_duration(result.bound_ps),
                         percent(result.recompute_ps - result.bound_ps, result.recompute_ps));
    case Termination::kInfeasible:
      return fmt::format("it does not fit: {}{}", smallest_text(report), result.is_smallest_proved ? " (proved)" : "");
    case Termination::kLimit:
      if (report.against == planner::Against::kReserved)  // not for lack of work: nothing proves that none fits
        return fmt::format("no plan was found that fits with the fragments of the allocator's cache; {}",
                           smallest_text(report));
      return fmt::format("the limit of the search was reached before a plan was found; {}", smallest_text(report));
    case Termination::kNotFound:
      return fmt::format("the method {} found no plan that fits; {}", planner::name_of(report.method),
                         smallest_text(report));
  }
  return "";
}

// What the method's own model thinks, where a replay may think otherwise.
std::string own_text(const planner::MethodVerdict& own) {
  if (own.end == planner::SolveEnd::kInfeasible) return "no plan fits";
  if (own.end == planner::SolveEnd::kLimit && own.peak_bytes == 0) return "nothing: its limit was reached";
  std::string text =
      fmt::format("a peak of {}, recomputing {}", format_bytes(own.peak_bytes), format_duration(own.recompute_ps));
  if (!own.ratios.empty()) {
    double sum = 0;
    for (const planner::ModuleRatio& ratio : own.ratios) sum += ratio.given_up;
    text += fmt::format(", {} giving up {:.1f}% of their bytes on average",
                        count_of(static_cast<std::int64_t>(own.ratios.size()), "module"),
                        100 * sum / static_cast<double>(own.ratios.size()));
  }
  return text;
}

std::string held_by(const PlanReport& report) {
  std::vector<std::pair<std::int64_t, std::string_view>> parts;
  for (std::size_t i = 0; i < memory::kCategoryNames.size(); ++i)
    if (report.timeline.peak_by_category[i] > 0)
      parts.emplace_back(report.timeline.peak_by_category[i], memory::kCategoryNames[i]);
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (std::size_t i = 0; i < std::min(parts.size(), kMostHolders); ++i) {
    std::string name(parts[i].second);
    std::replace(name.begin(), name.end(), '_', ' ');
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", name, format_bytes(parts[i].first));
  }
  return text;
}

// What would help, for a plan that does not fit.
std::string advice(const PlanReport& report) {
  if (report.result.termination != Termination::kInfeasible) return "";
  if (!report.wishes.empty()) return "  " + wrap(what_wishes_leave_out(report), 2);
  const planner::PeakPlace place = planner::place_of(*report.step, report.timeline.peak);
  return "  " + wrap(what_helps(place, report.timeline.peak_by_category), 2);
}

std::string recompute_text(const PlanReport& report) {
  const cost::Total& total = report.result.recompute;
  std::string text = total.time_ps == 0 ? format_duration(0) : interval_text(total);
  text += fmt::format(", {} of the step", percent(total.time_ps, report.cost.all.time_ps));
  return text;
}

std::string policies_text(const PlanReport& report, const Style& style) {
  const std::string text = "\n" + style.heading("plans written by hand") + "\n";
  Table policies("<>>>>><");
  policies.row({"", "peak", "recomputing", "from", "to", "of the step", ""});
  for (const planner::PolicyFigures& figures_of : report.result.policies)
    policies.row({plan::policy_text(figures_of.policy), format_bytes(figures_of.peak_bytes),
                  format_duration(figures_of.recompute_ps), format_duration(figures_of.interval.low_ps),
                  format_duration(figures_of.interval.high_ps),
                  percent(figures_of.recompute_ps, report.cost.all.time_ps),
                  figures_of.fits ? "fits" : "does not fit"});
  return text + policies.text(2);
}

}  // namespace

std::string unpriced_section(const PlanReport& report, const Style& style) {
  const std::string text = unpriced_text(*report.step, report.cost.unpriced, style);
  return text.empty() ? text : "\n" + text;
}

PlanReport make_report(std::string file, std::shared_ptr<const Step> step, device::Device device, cost::StepCost cost,
                       const planner::PlannerOptions& options, planner::PlanResult result) {
  PlanReport report{.file = std::move(file),
                    .step = std::move(step),
                    .device = std::move(device),
                    .cost = std::move(cost),
                    .budget_bytes = options.budget_bytes,
                    .reserve_bytes = options.reserve_bytes,
                    .against = options.against,
                    .rounding_bytes = planner::rounding_of(options),
                    .method = options.method.method,
                    .wishes = space_text(options.space),
                    .result = std::move(result),
                    .timeline = {},
                    .is_short = false,
                    .output = {},
                    .certificate = {},
                    .no_certificate = {},
                    .removed = {}};
  report.timeline = memory::replay(
      *report.step, report.result.plan,
      {.workspace = options.workspace, .round_to_bytes = planner::rounding_of(options), .keep_alive_at_peak = false});
  return report;
}

std::string plan_text(const PlanReport& report, const Style& style) {
  const PlanResult& result = report.result;
  const std::int64_t room = report.budget_bytes - report.reserve_bytes;
  std::string text = style.heading(fmt::format("{} on {}", printable(report.file), report.device.name)) + "\n\n";
  text += "  " + wrap(verdict(report), 2) + "\n";
  Table figures("<<");
  figures.row({"budget", report.reserve_bytes == 0
                             ? format_bytes(report.budget_bytes)
                             : fmt::format("{}, of which {} are not for tensors", format_bytes(report.budget_bytes),
                                           format_bytes(report.reserve_bytes))});
  figures.row({"peak", fmt::format("{} of {}; without a plan {}, {} {}", format_bytes(result.peak_bytes),
                                   format_bytes(room), format_bytes(result.unplanned_peak_bytes),
                                   result.is_smallest_proved ? "at least" : "smallest known",
                                   format_bytes(result.smallest_peak_bytes))});
  figures.row({"held by", held_by(report)});
  figures.row({"at", moment_text(*report.step, report.timeline.peak)});
  figures.row({"recomputing", recompute_text(report)});
  if (result.recompute.unpriced_ops > 0)
    figures.row({"not counted",
                 fmt::format("recomputes {} of {} without a price", count_of(result.recompute.unpriced_ops, "op"),
                             format_bytes(result.recompute.unpriced_bytes))});
  figures.row({"the step's ops", interval_text(report.cost.all)});
  figures.row({"times", sources_text(report.cost.all)});
  if (result.own)
    figures.row({"its own model", fmt::format("{} says {}", planner::name_of(report.method), own_text(*result.own))});
  text += figures.text(2);
  text += notes_text(report.cost.notes);
  text += advice(report);
  if (!result.plan.units.empty()) {
    text +=
        "\n" + style.heading(planner::has_plan(result.termination) ? "checkpointed" : "the smallest plan checkpoints");
    text += "\n" + units_text(report);
  }
  if (!result.restored.empty())
    text += fmt::format("  {} {} buffers, which applying the plan restores\n",
                        count_of(static_cast<std::int64_t>(result.restored.size()), "unit"),
                        result.restored.size() == 1 ? "changes" : "change");
  if (!report.is_short) text += policies_text(report, style) + unpriced_section(report, style);
  if (!report.output.empty()) text += fmt::format("\nwritten to {}\n", printable(report.output));
  if (!report.removed.empty())
    text += fmt::format("\nno plan to write; the one of before was removed: {}\n", printable(report.removed));
  if (!report.certificate.empty()) text += fmt::format("certificate in {}\n", printable(report.certificate));
  if (!report.no_certificate.empty()) text += fmt::format("no certificate: {}\n", report.no_certificate);
  return text;
}

Json plan_json(const PlanReport& report) {
  const PlanResult& result = report.result;
  Json policies = Json::array();
  for (const planner::PolicyFigures& figures : result.policies)
    policies.push_back({{"policy", plan::policy_text(figures.policy)},
                        {"peak_bytes", figures.peak_bytes},
                        {"recompute_ps", figures.recompute_ps},
                        {"recompute_low_ms", ms(figures.interval.low_ps)},
                        {"recompute_high_ms", ms(figures.interval.high_ps)},
                        {"fits", figures.fits}});
  Json excluded = Json::object();
  for (std::size_t i = 1; i < result.excluded.size(); ++i)
    excluded[std::string(planner::kExclusionNames[i])] = result.excluded[i];
  Json json{{"step", report.file},
            {"device", report.device.name},
            {"method", planner::name_of(report.method)},
            {"termination", planner::name_of(result.termination)},
            {"budget_bytes", report.budget_bytes},
            {"reserve_bytes", report.reserve_bytes},
            {"against", planner::kAgainstNames[static_cast<std::size_t>(report.against)]},
            {"rounding_bytes", report.rounding_bytes},
            {"peak_bytes", result.peak_bytes},
            {"unplanned_peak_bytes", result.unplanned_peak_bytes},
            {"smallest_peak_bytes", result.smallest_peak_bytes},
            {"smallest_peak_proved", result.is_smallest_proved},
            {"recompute_ms", ms(result.recompute_ps)},
            {"bound_ms", ms(result.bound_ps)},
            {"recompute_ps", result.recompute_ps},
            {"bound_ps", result.bound_ps},
            {"recompute", total_json(result.recompute)},
            {"step_ops_ms", ms(report.cost.all.time_ps)},
            {"step_ops", total_json(report.cost.all)},
            {"notes", report.cost.notes},
            {"unpriced", unpriced_json(*report.step, report.cost.unpriced)},
            {"recomputed_unpriced", unpriced_json(*report.step, result.unpriced)},
            {"units", static_cast<std::int64_t>(result.plan.units.size())},
            {"policies", policies},
            {"candidates", result.candidate_count},
            {"excluded", excluded},
            {"search",
             {{"passes", result.statistics.passes},
              {"entries", result.statistics.work},
              {"longest_list", result.statistics.longest_list}}}};
  if (!report.output.empty() || !report.certificate.empty())
    json["certificate"] = report.certificate.empty() ? Json(nullptr) : Json(report.certificate);
  if (!report.removed.empty()) json["removed"] = report.removed;
  if (result.own) {
    constexpr std::array<std::string_view, 3> kEnds = {"optimal", "infeasible", "limit"};
    Json ratios = Json::object();
    for (const planner::ModuleRatio& ratio : result.own->ratios) ratios[ratio.fqn] = ratio.given_up;
    json["own_model"] = {{"termination", kEnds[static_cast<std::size_t>(result.own->end)]},
                         {"peak_bytes", result.own->peak_bytes},
                         {"recompute_ms", ms(result.own->recompute_ps)},
                         {"ratios", ratios}};
  }
  return json;
}

}  // namespace tidemark::report
