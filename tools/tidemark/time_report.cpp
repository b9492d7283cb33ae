#include "time_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "text_layout.h"
#include "tidemark/base/bytes.h"
#include "tidemark/base/checked.h"
#include "tidemark/base/duration.h"
#include "tidemark/step/dtype.h"
#include "tidemark/step/dump.h"
#include "tidemark/step/op_key.h"

namespace tidemark::cli {

namespace {

using namespace step;
using cost::Time;
using cost::TimeSource;

constexpr std::size_t kMostExpensive = 20;
constexpr double kPsPerS = 1e12;

// Some ops of a step that are shown as one.
struct Row {
  std::int64_t key = 0;  // what they have in common
  std::int64_t count = 0;
  std::int64_t time_ps = 0;
  cost::Total total;  // of all of them, once they are known
  std::int64_t compute_ps = 0;
  std::int64_t memory_ps = 0;
  std::int64_t forward_ps = 0;
  std::int64_t backward_ps = 0;  // with what is run again
  std::vector<OpId> ops;
  OpId first;

  void add(const Step& step, OpId op, const Time& time) {
    if (count == 0) first = op;
    ++count;
    ops.push_back(op);
    time_ps += time.total_ps;
    compute_ps += time.compute_ps;
    memory_ps += time.memory_ps;
    const PassKind kind = step[step[op].pass].kind;
    if (kind == PassKind::kForward || kind == PassKind::kLoss) forward_ps += time.total_ps;
    if (kind == PassKind::kBackward || kind == PassKind::kRecompute) backward_ps += time.total_ps;
  }
};

Row finished(Row row, const cost::StepCost& cost) {
  row.total = cost::total_of(cost, row.ops);
  row.ops = {};
  return row;
}

// One row for every value that `key_of` gives, the longest first. Ops that cost nothing and are priced are left out.
template <class KeyOf>
std::vector<Row> rows_by(const TimeReport& report, const KeyOf& key_of) {
  std::map<std::int64_t, Row> rows;
  for (std::uint32_t i = 0; i < report.cost.ops.size(); ++i) {
    const Time& time = report.cost.ops[i];
    if (time.source == TimeSource::kFree || time.source == TimeSource::kUnpriced) continue;
    const std::int64_t key = key_of(OpId(i));
    rows[key].key = key;
    rows[key].add(report.step, OpId(i), time);
  }
  std::vector<Row> sorted;
  for (auto& [key, row] : rows) sorted.push_back(finished(std::move(row), report.cost));
  std::stable_sort(sorted.begin(), sorted.end(), [](const Row& a, const Row& b) { return a.time_ps > b.time_ps; });
  return sorted;
}

std::vector<Row> rows_by_kind(const TimeReport& report) {
  const OpKinds kinds = op_kinds(report.step);
  return rows_by(report, [&](OpId op) { return static_cast<std::int64_t>(kinds.of_op[op.index()]); });
}

std::vector<Row> rows_by_name(const TimeReport& report) {
  return rows_by(report, [&](OpId op) { return static_cast<std::int64_t>(report.step[op].name.value()); });
}

// What a module and those inside it take, down to `depth` below the root, in the order of the tree; what belongs to no
// module last, with the key -1.
std::vector<Row> rows_by_module(const TimeReport& report) {
  const Step& step = report.step;
  std::vector<std::size_t> depth(step.tables().modules.size(), 0);
  for (std::size_t i = 0; i < depth.size(); ++i) {
    const ModuleId parent = step.tables().modules[i].parent;
    if (parent.has_value()) depth[i] = depth[parent.index()] + 1;
  }
  std::map<std::int64_t, Row> rows;
  Row none;
  none.key = -1;
  for (std::uint32_t i = 0; i < report.cost.ops.size(); ++i) {
    const CallId call = step[OpId(i)].call;
    if (call.is_none()) {
      none.add(step, OpId(i), report.cost.ops[i]);
      continue;
    }
    for (ModuleId module = step[call].module; module.has_value(); module = step[module].parent) {
      if (depth[module.index()] > report.depth) continue;
      rows[module.value()].key = module.value();
      rows[module.value()].add(step, OpId(i), report.cost.ops[i]);
    }
  }
  std::vector<Row> sorted;
  for (auto& [key, row] : rows) sorted.push_back(finished(std::move(row), report.cost));
  if (none.count > 0) sorted.push_back(finished(std::move(none), report.cost));
  return sorted;
}

std::string shapes_text(const Step& step, OpId id) {
  std::vector<std::string> shapes;
  for (const TensorId input : step.inputs(step[id])) {
    const Layout& layout = step[step[input].layout];
    shapes.push_back(fmt::format("{}[{}]", short_name(layout.dtype), fmt::join(step.sizes(layout), ",")));
  }
  return fmt::format("{}", fmt::join(shapes, " "));
}

std::string module_name(const TimeReport& report, std::int64_t key) {
  if (key < 0) return "no module";
  const ModuleId module(static_cast<std::uint32_t>(key));
  const std::string fqn = report.step.fqn(module);
  return fmt::format("{} ({})", fqn.empty() ? "the root" : printable(fqn),
                     printable(report.step.text(report.step[module].type)));
}

// What the step works through: tokens when the model's first input is of integers, else what its first dimension
// counts.
struct Items {
  std::int64_t count = 0;
  const char* name = "samples";
};

Items items_of_call(const Step& step, const Call& call) {
  for (const TensorId input : step.inputs(call)) {
    const Layout& layout = step[step[input].layout];
    const auto sizes = step.sizes(layout);
    if (sizes.empty()) continue;
    const bool are_tokens = layout.dtype == DType::kInt64 || layout.dtype == DType::kInt32;
    if (!are_tokens) return {sizes[0], "samples"};
    return {std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>()), "tokens"};
  }
  return {};
}

// Of all micro-batches: each is a call of the model.
Items items_of(const Step& step) {
  Items items;
  ModuleId model;
  for (const Call& call : step.tables().calls) {
    if (call.parent.has_value() || step[call.pass].kind != PassKind::kForward) continue;
    const Items more = items_of_call(step, call);
    if (more.count == 0) continue;
    if (model.is_none()) {
      model = call.module;
      items = more;
    } else if (call.module == model) {
      items.count = checked_add(items.count, more.count).value_or(items.count);
    }
  }
  return items;
}

double per_second(std::int64_t count, std::int64_t ps) {
  return static_cast<double>(count) / (static_cast<double>(ps) / kPsPerS);
}

// What decides the step where it is not the device.
const char* host_text(const cost::StepCost& cost) {
  if (cost.host_ps > cost.all.time_ps) return "; the host is the slower one, at an assumed speed";
  return cost.step_ps > cost.all.time_ps ? "; in some passes the host is the slower one, at an assumed speed" : "";
}

std::string overview_text(const TimeReport& report) {
  const cost::StepCost& c = report.cost;
  Table table("<<");
  table.row({"device", fmt::format("{}: {}", printable(report.device.name), printable(report.device.title))});
  // A CPU is its own host.
  const bool is_overlapped = report.device.kind != device::DeviceKind::kCpu;
  table.row({"step", fmt::format("{}{}{}", interval_text(c.step_ps, c.step),
                                 is_overlapped ? ", host and device overlapped" : "", host_text(c))});
  for (std::size_t kind = 0; kind < kPassKindNames.size(); ++kind)
    if (c.pass_ps[kind] > 0)
      table.row({"  " + std::string(kPassKindNames[kind]), interval_text(c.pass_ps[kind], c.pass_interval[kind])});
  table.row({"sum of ops", interval_text(c.all)});
  table.row({"times", sources_text(c.all)});
  const Items items = items_of(report.step);
  if (items.count > 0 && c.step_ps > 0)
    table.row({fmt::format("{}/s", items.name), fmt::format("{:.4g}", per_second(items.count, c.step_ps))});
  table.row({"MFU", fmt::format("{:.1f} %", 100 * cost::model_flops_utilisation(c, report.device))});
  table.row({"HFU", fmt::format("{:.1f} %", 100 * cost::hardware_flops_utilisation(c, report.device))});
  return table.text(2) + notes_text(c.notes);
}

// What most of an op's time is spent on.
const char* bound_of(const Time& time) {
  if (time.source == TimeSource::kMeasured) return "measured";
  if (time.launch_ps > time.compute_ps && time.launch_ps > time.memory_ps) return "launch";
  return time.compute_ps > time.memory_ps ? "compute" : "memory";
}

std::string kinds_text(const TimeReport& report) {
  const std::vector<Row> rows = rows_by_kind(report);
  Table table(">>><<<");
  for (std::size_t i = 0; i < std::min(kMostExpensive, rows.size()); ++i)
    table.row({format_duration(rows[i].time_ps), percent(rows[i].time_ps, report.cost.all.time_ps),
               fmt::format("{} x", format_count(rows[i].count)), bound_of(report.cost.ops[rows[i].first.index()]),
               elide(printable(report.step.text(report.step[rows[i].first].name)), 38),
               shapes_text(report.step, rows[i].first)});
  return table.text(2);
}

std::string names_text(const TimeReport& report) {
  Table table(">>>>>>><");
  table.row({"", "", "from", "to", "ops", "compute", "memory", ""});
  for (const Row& row : rows_by_name(report))
    table.row({format_duration(row.time_ps), percent(row.time_ps, report.cost.all.time_ps),
               format_duration(row.total.low_ps), format_duration(row.total.high_ps), format_count(row.count),
               format_duration(row.compute_ps), format_duration(row.memory_ps),
               printable(report.step.text(report.step[row.first].name))});
  return table.text(2);
}

std::string modules_text(const TimeReport& report) {
  const std::vector<Row> rows = rows_by_module(report);
  const bool has_unpriced = report.cost.all.unpriced_ops > 0;
  Table table(has_unpriced ? "<>>>>>>>" : "<>>>>>>");
  std::vector<std::string> titles = {"", "forward", "backward", "sum", "from", "to", ""};
  if (has_unpriced) titles.emplace_back("no price");
  table.row(std::move(titles));
  for (const Row& row : rows) {
    std::vector<std::string> cells = {elide(module_name(report, row.key), has_unpriced ? 34 : 42),
                                      format_duration(row.forward_ps),
                                      format_duration(row.backward_ps),
                                      format_duration(row.time_ps),
                                      format_duration(row.total.low_ps),
                                      format_duration(row.total.high_ps),
                                      percent(row.time_ps, report.cost.all.time_ps)};
    if (has_unpriced) cells.push_back(row.total.unpriced_ops > 0 ? count_of(row.total.unpriced_ops, "op") : "");
    table.row(std::move(cells));
  }
  return table.text(2);
}

const char* view_title(TimeView view) {
  if (view == TimeView::kOp) return "by op";
  return view == TimeView::kModule ? "by module" : "most expensive ops";
}

std::string view_text(const TimeReport& report) {
  if (report.view == TimeView::kOp) return names_text(report);
  return report.view == TimeView::kModule ? modules_text(report) : kinds_text(report);
}

Json row_json(const Row& row) {
  return {{"count", row.count},
          {"ms", ms(row.time_ps)},
          {"low_ms", ms(row.total.low_ps)},
          {"high_ms", ms(row.total.high_ps)},
          {"measured_ms", ms(row.total.measured_ps)},
          {"modelled_ms", ms(row.total.modelled_ps)},
          {"unpriced_ops", row.total.unpriced_ops},
          {"unpriced_bytes", row.total.unpriced_bytes},
          {"compute_ms", ms(row.compute_ps)},
          {"memory_ms", ms(row.memory_ps)},
          {"forward_ms", ms(row.forward_ps)},
          {"backward_ms", ms(row.backward_ps)}};
}

}  // namespace

std::string time_text(const TimeReport& report, const Console& console) {
  std::string text = console.heading(elide(printable(report.file), kMaxColumns)) + "\n" + overview_text(report);
  text += fmt::format("\n{}\n{}", console.heading(view_title(report.view)), view_text(report));
  if (!report.cost.unpriced.empty()) text += "\n" + unpriced_text(report.step, report.cost.unpriced, console.style());
  return text;
}

Json time_json(const TimeReport& report) {
  const cost::StepCost& c = report.cost;
  const Items items = items_of(report.step);
  Json json = {{"file", report.file},
               {"device", report.device.name},
               {"step_ms", ms(c.step_ps)},
               {"step_low_ms", ms(c.step.low_ps)},
               {"step_high_ms", ms(c.step.high_ps)},
               {"host_ms", ms(c.host_ps)},
               {"checkpoint_region_ms", ms(c.region_ps)},
               {"checkpoint_save_ms", ms(c.region_save_ps)},
               {"checkpoint_rng_ms", ms(c.region_rng_ps)},
               {"sum", total_json(c.all)},
               {"passes", Json::object()},
               {"mfu", cost::model_flops_utilisation(c, report.device)},
               {"hfu", cost::hardware_flops_utilisation(c, report.device)},
               {items.name, items.count},
               {fmt::format("{}_per_s", items.name), c.step_ps > 0 ? Json(per_second(items.count, c.step_ps)) : Json()},
               {"most_expensive", Json::array()},
               {"by_op", Json::array()},
               {"by_module", Json::array()},
               {"notes", c.notes},
               {"unpriced", unpriced_json(report.step, c.unpriced)}};
  for (std::size_t kind = 0; kind < kPassKindNames.size(); ++kind) {
    if (c.pass_ps[kind] == 0 && c.passes[kind].unpriced_ops == 0) continue;
    json["passes"][kPassKindNames[kind]] = {{"step_ms", ms(c.pass_ps[kind])},
                                            {"step_low_ms", ms(c.pass_interval[kind].low_ps)},
                                            {"step_high_ms", ms(c.pass_interval[kind].high_ps)},
                                            {"sum", total_json(c.passes[kind])}};
  }
  const std::vector<Row> kinds = rows_by_kind(report);
  for (std::size_t i = 0; i < std::min(kMostExpensive, kinds.size()); ++i) {
    Json row = {{"op", report.step.text(report.step[kinds[i].first].name)},
                {"inputs", shapes_text(report.step, kinds[i].first)},
                {"source", cost::kTimeSourceNames[static_cast<std::size_t>(c.ops[kinds[i].first.index()].source)]}};
    row.update(row_json(kinds[i]));
    json["most_expensive"].push_back(std::move(row));
  }
  for (const Row& op : rows_by_name(report)) {
    Json row = {{"op", report.step.text(report.step[op.first].name)}};
    row.update(row_json(op));
    json["by_op"].push_back(std::move(row));
  }
  for (const Row& module : rows_by_module(report)) {
    Json row = {
        {"module", module.key < 0 ? Json() : Json(report.step.fqn(ModuleId(static_cast<std::uint32_t>(module.key))))}};
    row.update(row_json(module));
    json["by_module"].push_back(std::move(row));
  }
  return json;
}

}  // namespace tidemark::cli
