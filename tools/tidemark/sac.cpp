// tidemark sac STEP --module NAME: what a module's ops cost to keep and to run again, as PyTorch's SAC estimator shows
// it, and beside it the exact frontier.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>

#include "commands.h"
#include "ranks_argument.h"
#include "step_argument.h"
#include "text_layout.h"
#include "tidemark/base/atomic_file.h"
#include "tidemark/base/bytes.h"
#include "tidemark/base/duration.h"
#include "tidemark/base/edit_distance.h"
#include "tidemark/base/error.h"
#include "tidemark/cost/reference_roofline.h"
#include "tidemark/cost/step_cost.h"
#include "tidemark/device/catalog.h"
#include "tidemark/sac/frontier.h"
#include "tidemark/sac/module_info_file.h"
#include "tidemark/sac/trade_off.h"
#include "tidemark/step/dump.h"

namespace tidemark::cli {

namespace {

using namespace sac;

struct SacOptions {
  std::string step;
  std::string module;
  std::size_t call = 1;
  std::string device;
  std::string cost = "tidemark";
  std::string rules;
  std::string export_to;
  RanksArgument ranks;
  NativeOptions native;
};

constexpr const char* kOwnCost = "tidemark";
constexpr std::size_t kShownFrontierPoints = 24;

// Milliseconds of every op; and what is known about them, when they are our own.
struct OpTimes {
  std::vector<double> ms;
  std::vector<std::uint8_t> is_unpriced;  // PyTorch's estimators have a time for everything
  std::optional<cost::StepCost> own;
};

// Requires: not our own cost.
cost::ReferenceLine line_of(const SacOptions& options) {
  const auto& names = cost::kReferenceLineNames;
  return static_cast<cost::ReferenceLine>(std::find(names.begin(), names.end(), options.cost) - names.begin());
}

OpTimes op_times(const step::Step& step, const SacOptions& options) {
  if (options.cost == kOwnCost) {
    OpTimes times{{}, {}, cost::price_step(step, device::find_device(options.device), options.ranks.price_options())};
    for (const cost::Time& time : times.own->ops) {
      times.ms.push_back(ms(time.total_ps));
      times.is_unpriced.push_back(time.source == cost::TimeSource::kUnpriced ? 1 : 0);
    }
    return times;
  }
  return {cost::reference_times_ms(step, line_of(options), options.device), {}, std::nullopt};
}

// What was asked for, or the rules that go with the times.
Rules rules_of(const SacOptions& options) {
  const std::string name = !options.rules.empty()          ? options.rules
                           : options.cost == "reference-n" ? "reference-m"
                                                           : options.cost;
  return static_cast<Rules>(std::find(kRulesNames.begin(), kRulesNames.end(), name) - kRulesNames.begin());
}

// The forward calls of the module, in the order in which they ran.
std::vector<step::CallId> find_calls(const step::Step& step, const std::string& fqn) {
  std::vector<step::CallId> found;
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < step.tables().calls.size(); ++i) {
    const step::Call& call = step.tables().calls[i];
    if (step[call.pass].kind != step::PassKind::kForward) continue;
    std::string name = step.fqn(call.module);
    if (name == fqn) found.emplace_back(i);
    if (!name.empty()) names.push_back(std::move(name));
  }
  if (!found.empty()) return found;
  const auto nearer = [&](const std::string& a, const std::string& b) {
    return edit_distance(a, fqn) < edit_distance(b, fqn);
  };
  const auto nearest = std::min_element(names.begin(), names.end(), nearer);
  throw Error({.kind = ErrorKind::kInput,
               .place = "--module",
               .problem = "no module of this name runs in the step",
               .expected = "the full name of a module, \"\" for the whole model",
               .got = step::printable(fqn),
               .remedy = nearest == names.end() ? "tidemark inspect lists the modules"
                                                : fmt::format("the nearest is \"{}\"", step::printable(*nearest))});
}

step::CallId find_call(const std::vector<step::CallId>& calls, std::size_t number) {
  if (number >= 1 && number <= calls.size()) return calls[number - 1];
  throw Error({.kind = ErrorKind::kInput,
               .place = "--call",
               .problem = "the module is not called so often",
               .expected = fmt::format("1 to {}", calls.size()),
               .got = fmt::format("{}", number),
               .remedy = {}});
}

struct SacReport {
  std::size_t call_count = 1;  // of the module; one of them is shown
  ModuleOperators operators;
  std::optional<cost::Total> total;  // PyTorch's estimators tell no intervals
  std::vector<cost::UnpricedOp> unpriced;
  std::vector<std::string> notes;
  GreedyOrder order;
  TradeOff trade_off;
  Frontier frontier;
};

SacReport report_on(const step::Step& step, const SacOptions& options, const OpTimes& times) {
  const StepIndex index(step);
  const Rules rules = rules_of(options);
  SacReport report;
  const std::vector<step::CallId> calls = find_calls(step, options.module);
  report.call_count = calls.size();
  report.operators = list_operators(index, find_call(calls, options.call), times.ms, rules, times.is_unpriced);
  report.order = greedy_order(index, report.operators, rules);
  report.trade_off = trade_off(report.operators, report.order, rules);
  report.frontier = exact_frontier(report.operators, report.order);
  if (times.own) {
    std::vector<step::OpId> ops;
    for (const Operator& o : report.operators.operators) ops.push_back(o.op);
    report.total = cost::total_of(*times.own, ops);
    report.unpriced = cost::unpriced_of(step, *times.own, ops);
    report.notes = times.own->notes;
  }
  return report;
}

std::string yes(bool value) { return value ? "yes" : ""; }

std::string operator_table(const SacReport& report) {
  Table table(">>><<<><");
  table.row({"op", "ms", "bytes", "view", "random", "saved", "changes", "name"});
  for (std::uint32_t i = 0; i < report.operators.operators.size(); ++i) {
    const Operator& o = report.operators.operators[i];
    table.row({fmt::format("{}", i), o.is_unpriced ? "no price" : fmt::format("{:.4f}", o.ms), format_count(o.bytes),
               yes(o.is_view_like), yes(o.is_random), yes(o.is_saved_by_autograd),
               o.changes ? fmt::format("{}", *o.changes) : "", step::printable(o.name)});
  }
  return table.text(2);
}

std::string members_text(const SacReport& report, const std::vector<std::uint32_t>& members) {
  std::string text;
  for (const std::uint32_t member : members)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", member,
                        step::printable(report.operators.operators[member].name));
  return text;
}

// Cumulative, as the estimator prints it: what is given up by then, and what that costs.
std::string trade_off_table(const SacReport& report) {
  const ModuleOperators& all = report.operators;
  Table table(">>>>><");
  table.row({"given up", "bytes", "recompute", "ms", "bytes/ms", "ops"});
  std::int64_t bytes = 0;
  double ms = 0;
  const auto row = [&](std::int64_t more_bytes, double more_ms, std::string score,
                       const std::vector<std::uint32_t>& members) {
    bytes += more_bytes;
    ms += more_ms;
    const double total_bytes = static_cast<double>(std::max<std::int64_t>(all.total_bytes, 1));
    table.row({fmt::format("{:.2f} %", 100 * static_cast<double>(bytes) / total_bytes), format_count(bytes),
               fmt::format("{:.2f} %", all.total_ms > 0 ? 100 * ms / all.total_ms : 0), fmt::format("{:.4f}", ms),
               std::move(score), members_text(report, members)});
  };
  const auto row_of = [&](const std::vector<std::uint32_t>& members, const std::string& word) {
    if (members.empty()) return;
    std::int64_t of_bytes = 0;
    double of_ms = 0;
    for (const std::uint32_t member : members) {
      of_bytes += all.operators[member].bytes;
      of_ms += all.operators[member].ms;
    }
    row(of_bytes, of_ms, word, members);
  };
  row_of(report.order.recomputed, "always");
  for (const Candidate& candidate : report.order.candidates)
    row(candidate.bytes, candidate.ms, candidate.ms > 0 ? fmt::format("{:.4g}", candidate.score) : "free",
        candidate.members);
  std::vector<std::uint32_t> stored;
  std::set_difference(report.order.stored.begin(), report.order.stored.end(), report.order.unpriced.begin(),
                      report.order.unpriced.end(), std::back_inserter(stored));
  row_of(report.order.unpriced, "no price");
  row_of(stored, "never");
  return table.text(2);
}

std::string fit_text(const PiecewiseLine& fit) {
  std::string text;
  for (std::size_t i = 0; i < fit.slopes.size(); ++i)
    text += fmt::format("  {:.4f} to {:.4f}: {:.4f} x {} {:.4f}\n", fit.breaks[i], fit.breaks[i + 1], fit.slopes[i],
                        fit.intercepts[i] < 0 ? "-" : "+", std::abs(fit.intercepts[i]));
  return text;
}

// All points of a short frontier, evenly many of a long one.
std::string frontier_text(const Frontier& frontier) {
  if (!frontier.is_complete) return "  more than a million points: not listed\n";
  Table table(">>");
  table.row({"bytes given up", "recompute"});
  const std::size_t count = frontier.points.size();
  const std::size_t shown = std::min(count, kShownFrontierPoints);
  for (std::size_t i = 0; i < shown; ++i) {
    const FrontierPoint& point = frontier.points[shown == 1 ? 0 : i * (count - 1) / (shown - 1)];
    table.row({format_count(point.given_up_bytes), format_duration(point.recompute_ps)});
  }
  std::string text = table.text(2);
  if (shown < count) text += fmt::format("  {} of {} points; --json has all\n", shown, count);
  return text;
}

std::string text_of(const SacReport& report, const step::Step& step, const SacOptions& options,
                    const Console& console) {
  const ModuleOperators& all = report.operators;
  const std::string name = options.module.empty() ? "the whole model" : step::printable(options.module);
  std::string text = console.heading(fmt::format("{}: {}, {}, {:.4f} ms", name,
                                                 count_of(static_cast<std::int64_t>(all.operators.size()), "op"),
                                                 format_bytes_exact(all.total_bytes), all.total_ms)) +
                     "\n";
  if (report.call_count > 1)
    text += fmt::format("  call {} of {}; --call shows another\n", options.call, report.call_count);
  text += "  " + (report.total ? wrap(total_text(*report.total), 2)
                               : "times of PyTorch's estimator, all modelled, which tells no interval\n");
  text += notes_text(report.notes);
  text += operator_table(report);
  text += unpriced_text(step, report.unpriced, console.style());
  text += console.heading("given up in greedy order, added up") + "\n" + trade_off_table(report);
  if (!report.trade_off.fit.slopes.empty())
    text += console.heading("fitted: part of the time for a part x of the bytes, as the estimator shifts it") + "\n" +
            fit_text(report.trade_off.fit);
  text += console.heading("frontier: the least time for so many bytes") + "\n" + frontier_text(report.frontier);
  if (!report.order.unpriced.empty())
    text += "  ops without a price are kept in all of it, with what belongs to them\n";
  return text;
}

Json json_of(const SacReport& report, const step::Step& step, const SacOptions& options) {
  const ModuleOperators& all = report.operators;
  Json json = {{"module", options.module},
               {"call", options.call},
               {"calls", report.call_count},
               {"device", options.device},
               {"cost", options.cost},
               {"notes", report.notes},
               {"rules", kRulesNames[static_cast<std::size_t>(rules_of(options))]},
               {"total_bytes", all.total_bytes},
               {"total_ms", all.total_ms},
               {"sum", report.total ? total_json(*report.total) : Json()},
               {"unpriced", unpriced_json(step, report.unpriced)},
               {"must_store_random", all.must_store_random},
               {"operators", Json::array()},
               {"candidates", Json::array()},
               {"stored", report.order.stored},
               {"stored_unpriced", report.order.unpriced},
               {"recomputed", report.order.recomputed},
               {"curve", Json::array()},
               {"breaks", report.trade_off.fit.breaks},
               {"slopes", report.trade_off.fit.slopes},
               {"intercepts", report.trade_off.fit.intercepts},
               {"frontier_is_complete", report.frontier.is_complete},
               {"frontier", Json::array()}};
  for (const Operator& o : all.operators)
    json["operators"].push_back({{"op", o.op.value()},
                                 {"name", o.name},
                                 {"ms", o.ms},
                                 {"unpriced", o.is_unpriced},
                                 {"bytes", o.bytes},
                                 {"view_like", o.is_view_like},
                                 {"random", o.is_random},
                                 {"saved_by_autograd", o.is_saved_by_autograd},
                                 {"changes", o.changes ? Json(*o.changes) : Json()}});
  for (const Candidate& c : report.order.candidates)
    json["candidates"].push_back(
        {{"head", c.head}, {"members", c.members}, {"bytes", c.bytes}, {"ms", c.ms}, {"score", c.score}});
  for (const CurvePoint& point : report.trade_off.curve) json["curve"].push_back({point.x, point.y});
  for (const FrontierPoint& point : report.frontier.points)
    json["frontier"].push_back({{"given_up_bytes", point.given_up_bytes}, {"recompute_ms", ms(point.recompute_ps)}});
  return json;
}

device::DeviceKind device_kind(const SacOptions& options) {
  return options.cost == kOwnCost ? device::find_device(options.device).kind
                                  : cost::reference_device_kind(line_of(options), options.device);
}

ExitCode run_sac(SacOptions options, const Console& console) {
  follow_device(options.native, device_kind(options));
  const step::Step step = read_step_argument(options.step, options.native);
  const OpTimes times = op_times(step, options);
  if (!options.export_to.empty()) {
    const ModuleInfo info =
        module_info(step, times.ms, {.rules = rules_of(options), .device = {}, .is_unpriced = times.is_unpriced});
    write_file_atomically(options.export_to, module_info_json(info));
  }
  const SacReport report = report_on(step, options, times);
  if (console.json()) {
    console.print_json(json_of(report, step, options));
  } else {
    console.print(text_of(report, step, options, console));
  }
  return ExitCode::kOk;
}

}  // namespace

Command add_sac(CLI::App& root) {
  CLI::App* app = new_command(
      root, {.name = "sac",
             .summary = "Tell what a module's ops cost to keep and to run again",
             .examples = {{{"build/tidemark sac toy-gpt --device a100 --module layers.0", "one block"},
                           {"build/tidemark sac gpt2 --device h100 --module transformer.h.0.mlp --json", "as data"},
                           {"build/tidemark sac toy-gpt --cost reference-m --device m60 --module layers.0",
                            "PyTorch's times"}}}});
  const auto options = std::make_shared<SacOptions>();
  app->add_option(std::string(kStepName), options->step, kStepHelp)->required();
  app->add_option("--module", options->module, "the full name of a module that runs in the step; \"\" for all of it")
      ->type_name("NAME")
      ->required();
  add_count(*app, "--call", options->call, "which of its calls, from 1 on, if the step calls it more than once");
  app->add_option("--device", options->device, "the device: a name (tidemark devices), or the path of a device file")
      ->type_name("DEVICE")
      ->required();
  add_ranks_options(*app, options->ranks);
  app->add_option("--cost", options->cost, "times by tidemark (default), reference-m, reference-b or reference-n")
      ->type_name("MODEL")
      ->check(CLI::IsMember({"tidemark", "reference-m", "reference-b", "reference-n"}));
  app->add_option("--rules", options->rules, "whose rules ops are grouped by; by default those of --cost")
      ->type_name("RULES")
      ->check(CLI::IsMember(std::vector<std::string>(kRulesNames.begin(), kRulesNames.end())));
  app->add_option("--export", options->export_to,
                  "also write the statistics of all modules, for PyTorch's own planner, to FILE")
      ->type_name("FILE");
  add_native_options(*app, options->native);
  return {app, [options](Console& console) { return run_sac(*options, console); }};
}

}  // namespace tidemark::cli
