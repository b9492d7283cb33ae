#include "frontier_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontier_plot.h"
#include "text_layout.h"
#include "tidemark/base/bytes.h"
#include "tidemark/base/duration.h"
#include "tidemark/step/dump.h"

namespace tidemark::cli {

namespace {

using planner::Frontier;
using planner::FrontierPoint;

constexpr std::size_t kMostPoints = 8;  // rows of the table

std::int64_t proved_count(const Frontier& frontier) {
  return std::count_if(frontier.points.begin(), frontier.points.end(),
                       [](const FrontierPoint& point) { return point.is_proved(); });
}

std::int64_t missing_bytes(const Frontier& frontier) {
  std::int64_t bytes = 0;
  for (const planner::BudgetRange& range : frontier.missing) bytes += range.last_bytes - range.first_bytes + 1;
  return bytes;
}

// The widest distance between a time and its bound, in the share of the time.
const FrontierPoint* widest_gap(const Frontier& frontier) {
  const FrontierPoint* widest = nullptr;
  const auto gap = [](const FrontierPoint& point) {
    return static_cast<double>(point.recompute_ps - point.bound_ps) / static_cast<double>(point.recompute_ps);
  };
  for (const FrontierPoint& point : frontier.points)
    if (!point.is_proved() && (widest == nullptr || gap(point) > gap(*widest))) widest = &point;
  return widest;
}

std::string verdict(const FrontierReport& report) {
  const Frontier& frontier = report.frontier;
  const auto count = static_cast<std::int64_t>(frontier.points.size());
  const std::int64_t proved = proved_count(frontier);
  std::string text = count_of(count, frontier.is_full ? "breakpoint" : "budget");
  if (proved == count) {
    text += count == 1 ? ", proved" : ", all proved";
  } else {
    const FrontierPoint& widest = *widest_gap(frontier);
    text += fmt::format(", {} proved; of the others, the least time may be lower by {} at most", format_count(proved),
                        percent(widest.recompute_ps - widest.bound_ps, widest.recompute_ps));
  }
  if (!frontier.missing.empty()) {
    const std::int64_t all = frontier.unplanned_peak_bytes - frontier.smallest_peak_bytes;
    text += fmt::format(
        "; the work limit was reached with {} of {} budgets left in {} ({} of the range), where there may be more "
        "breakpoints: --max-work allows more",
        format_bytes(missing_bytes(frontier)), format_bytes(all),
        count_of(static_cast<std::int64_t>(frontier.missing.size()), "gap"), percent(missing_bytes(frontier), all));
  } else if (frontier.is_full) {
    text += "; there are no others";
  }
  return text;
}

// Points that are spread evenly over all of them, with both ends.
std::vector<const FrontierPoint*> some_points(const Frontier& frontier) {
  std::vector<const FrontierPoint*> some;
  const std::size_t count = frontier.points.size();
  const std::size_t rows = std::min(count, kMostPoints);
  for (std::size_t i = 0; i < rows; ++i) some.push_back(&frontier.points[rows == 1 ? 0 : i * (count - 1) / (rows - 1)]);
  return some;
}

std::string share(std::int64_t ps, const FrontierReport& report) { return percent(ps, report.ops.time_ps); }

// Names of ops come from files, and may hold anything.
std::string csv_word(std::string_view word) {
  if (word.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(word);
  std::string quoted = "\"";
  for (const char c : word) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string frontier_text(const FrontierReport& report, const Console& console) {
  const Frontier& frontier = report.frontier;
  std::string text =
      console.heading(fmt::format("{} on {}", step::printable(report.file), report.device.name)) + "\n\n";
  text += "  " + wrap(verdict(report), 2);
  if (!frontier.is_smallest_proved) text += "  budgets below the first one may be possible: its peak is not proved\n";
  std::string sources = "times: " + sources_text(report.ops);
  if (report.reserve_bytes > 0)
    sources = fmt::format("of every budget, {} are not for tensors; {}", format_bytes(report.reserve_bytes), sources);
  text += "  " + wrap(sources, 2);
  text += notes_text(report.notes);
  text += "\n";
  if (frontier.points.size() > 1) {
    text += console.heading(fmt::format("recomputing by budget, of the step's {}", interval_text(report.ops)));
    text += "\n" + frontier_plot(report) + "\n";
  }
  Table points(">>>>>>");
  points.row({"budget", "recomputing", "from", "to", "of the step", "units"});
  for (const FrontierPoint* point : some_points(frontier))
    points.row({format_bytes(point->budget_bytes + report.reserve_bytes),
                (point->is_proved() ? "" : "<= ") + format_duration(point->recompute_ps),
                format_duration(point->interval.low_ps), format_duration(point->interval.high_ps),
                share(point->recompute_ps, report), format_count(point->unit_count)});
  text += points.text(2);
  if (frontier.points.size() > kMostPoints)
    text += fmt::format("  {} of {}; --csv and --json list all\n", kMostPoints,
                        format_count(static_cast<std::int64_t>(frontier.points.size())));
  text += "\n" + console.heading("plans written by hand") + "\n";
  Table policies("<<>>>>>>");
  policies.row({"", "", "budget", "recomputing", "from", "to", "of the step", "at least"});
  for (const planner::PolicyFigures& figures : frontier.policies) {
    std::int64_t best = figures.recompute_ps;  // of a plan within that budget, which itself is one
    for (const FrontierPoint& point : frontier.points)
      if (point.peak_bytes <= figures.peak_bytes) best = std::min(best, point.recompute_ps);
    policies.row({std::string(1, mark_of(figures.policy)), plan::policy_text(figures.policy),
                  format_bytes(figures.peak_bytes + report.reserve_bytes), format_duration(figures.recompute_ps),
                  format_duration(figures.interval.low_ps), format_duration(figures.interval.high_ps),
                  share(figures.recompute_ps, report), share(best, report)});
  }
  text += policies.text(2);
  const std::string unpriced = unpriced_text(*report.step, report.unpriced, console.style());
  return unpriced.empty() ? text : text + "\n" + unpriced;
}

std::string frontier_csv(const FrontierReport& report) {
  std::string text =
      "kind,name,budget_bytes,peak_bytes,recompute_ms,step_percent,bound_ms,proved,units,low_ms,high_ms,ops,bytes\n";
  const auto part = [&](std::int64_t ps) {
    return report.ops.time_ps == 0 ? 0.0 : 100.0 * static_cast<double>(ps) / static_cast<double>(report.ops.time_ps);
  };
  for (const FrontierPoint& point : report.frontier.points)
    text += fmt::format("frontier,,{},{},{},{:.4f},{},{},{},{},{},,\n", point.budget_bytes + report.reserve_bytes,
                        point.peak_bytes, format_ms(point.recompute_ps), part(point.recompute_ps),
                        format_ms(point.bound_ps), point.is_proved() ? "yes" : "no", point.unit_count,
                        format_ms(point.interval.low_ps), format_ms(point.interval.high_ps));
  for (const planner::PolicyFigures& figures : report.frontier.policies)
    text += fmt::format("policy,{},{},{},{},{:.4f},,,,{},{},,\n", plan::policy_text(figures.policy),
                        figures.peak_bytes + report.reserve_bytes, figures.peak_bytes, format_ms(figures.recompute_ps),
                        part(figures.recompute_ps), format_ms(figures.interval.low_ps),
                        format_ms(figures.interval.high_ps));
  for (const cost::UnpricedOp& op : report.unpriced)
    text += fmt::format("unpriced,{},,,,,,,,,,{},{}\n", csv_word(report.step->text(op.name)), op.count, op.bytes);
  for (const std::string& note : report.notes) text += fmt::format("note,{},,,,,,,,,,,\n", csv_word(note));
  return text;
}

Json frontier_json(const FrontierReport& report) {
  const Frontier& frontier = report.frontier;
  Json points = Json::array();
  for (const FrontierPoint& point : frontier.points)
    points.push_back({{"budget_bytes", point.budget_bytes + report.reserve_bytes},
                      {"peak_bytes", point.peak_bytes},
                      {"recompute_ms", ms(point.recompute_ps)},
                      {"bound_ms", ms(point.bound_ps)},
                      {"recompute_ps", point.recompute_ps},
                      {"recompute_low_ms", ms(point.interval.low_ps)},
                      {"recompute_high_ms", ms(point.interval.high_ps)},
                      {"bound_ps", point.bound_ps},
                      {"proved", point.is_proved()},
                      {"termination", planner::name_of(point.termination())},
                      {"units", point.unit_count}});
  Json policies = Json::array();
  for (const planner::PolicyFigures& figures : frontier.policies)
    policies.push_back({{"policy", plan::policy_text(figures.policy)},
                        {"budget_bytes", figures.peak_bytes + report.reserve_bytes},
                        {"peak_bytes", figures.peak_bytes},
                        {"recompute_ms", ms(figures.recompute_ps)},
                        {"recompute_ps", figures.recompute_ps},
                        {"recompute_low_ms", ms(figures.interval.low_ps)},
                        {"recompute_high_ms", ms(figures.interval.high_ps)}});
  Json missing = Json::array();
  for (const planner::BudgetRange& range : frontier.missing)
    missing.push_back({{"first_budget_bytes", range.first_bytes + report.reserve_bytes},
                       {"last_budget_bytes", range.last_bytes + report.reserve_bytes}});
  return {{"step", report.file},
          {"device", report.device.name},
          {"against", planner::kAgainstNames[static_cast<std::size_t>(report.against)]},
          {"reserve_bytes", report.reserve_bytes},
          {"step_ops_ms", ms(report.ops.time_ps)},
          {"step_ops", total_json(report.ops)},
          {"notes", report.notes},
          {"unpriced", unpriced_json(*report.step, report.unpriced)},
          {"smallest_peak_bytes", frontier.smallest_peak_bytes},
          {"smallest_peak_proved", frontier.is_smallest_proved},
          {"unplanned_peak_bytes", frontier.unplanned_peak_bytes},
          {"full", frontier.is_full},
          {"points", points},
          {"missing", missing},
          {"policies", policies},
          {"search", {{"solved", frontier.solved}, {"work", frontier.work}}}};
}

}  // namespace tidemark::cli
