// What `tidemark memory` says to programs: JSON and comma-separated values.

#include <fmt/format.h>

#include <algorithm>

#include "memory_report.h"
#include "tidemark/memory/module_table.h"

namespace tidemark::cli {

namespace {

using namespace memory;

template <class Tag>
Json id_json(Id<Tag> id) {
  return id.is_none() ? Json() : Json(id.value());
}

Json bytes_json(std::int64_t bytes) { return bytes == CallPeak::kNever ? Json() : Json(bytes); }

Json module_json(const step::Step& step, step::ModuleId module) {
  return module.is_none() ? Json() : Json(step.fqn(module));
}

Json moment_json(const MemoryReport& report, const Moment& moment) {
  const step::Step& step = report.step;
  const bool has_source = moment.op.has_value() && step[moment.op].source.has_value();
  Json json = {{"bytes", moment.total_bytes},
               {"event", moment.event == kNoEvent ? Json() : Json(moment.event)},
               {"pass", moment.pass.is_none() ? Json() : Json(name_of(step[moment.pass].kind))},
               {"op", id_json(moment.op)},
               {"op_name", moment.op.is_none() ? Json() : Json(step.text(step[moment.op].name))},
               {"call", id_json(moment.call)},
               {"module", moment.call.is_none() ? Json() : module_json(step, step[moment.call].module)},
               {"recomputed_call", Json()},
               {"source", Json()}};
  if (moment.unit != kNoUnit) json["recomputed_call"] = report.plan.units[moment.unit].call.value();
  if (has_source) {
    const step::Source& source = step[step[moment.op].source];
    json["source"] = {
        {"file", step.text(source.file)}, {"line", source.line}, {"function", step.text(source.function)}};
  }
  return json;
}

Json plan_json(const MemoryReport& report) {
  Json units = Json::array();
  for (const plan::Unit& unit : report.plan.units) {
    Json ops = Json::array();
    for (const step::OpId op : unit.saved_ops) ops.push_back(op.value());
    units.push_back({{"call", unit.call.value()},
                     {"module", report.step.fqn(report.step[unit.call].module)},
                     {"saved_ops", std::move(ops)},
                     {"preserve_rng", unit.preserve_rng},
                     {"early_stop", unit.early_stop}});
  }
  return {{"policy", report.policy}, {"units", std::move(units)}};
}

Json modules_json(const MemoryReport& report) {
  Json list = Json::array();
  for (const ModuleRow& row : module_table(report.step, report.plan, report.timeline, report.depth))
    list.push_back({{"module", module_json(report.step, row.module)},
                    {"calls", row.calls},
                    {"peak_share_bytes", row.peak_share_bytes},
                    {"forward_peak_bytes", bytes_json(row.forward_peak_bytes)},
                    {"backward_peak_bytes", bytes_json(row.backward_peak_bytes)}});
  return list;
}

Json alive_json(const MemoryReport& report) {
  const std::vector<step::ModuleId> modules = modules_of(report.step, report.plan, report.timeline.alive_at_peak);
  Json list = Json::array();
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const Alive& alive = report.timeline.alive_at_peak[i];
    list.push_back({{"block", name_of(alive.block.kind)},
                    {"id", alive.block.id},
                    {"bytes", alive.bytes},
                    {"category", name_of(alive.category)},
                    {"made_by", id_json(alive.made_by)},
                    {"module", module_json(report.step, modules[i])}});
  }
  return list;
}

Json end_json(const MemoryReport& report) {
  Json list = Json::array();
  for (const Leftover& leftover : report.timeline.alive_at_end)
    list.push_back({{"block", name_of(leftover.block.kind)},
                    {"id", leftover.block.id},
                    {"bytes", leftover.bytes},
                    {"reason", name_of(leftover.reason)}});
  return list;
}

// A field of comma-separated values; quoted only where it must be.
std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  quoted += '"';
  return quoted;
}

}  // namespace

Json memory_json(const MemoryReport& report) {
  const Timeline& t = report.timeline;
  Json json = {{"file", report.file},
               {"plan", plan_json(report)},
               {"workspace", report.workspace_file.empty() ? Json() : Json(report.workspace_file)},
               {"peak_bytes", t.peak.total_bytes},
               {"start_bytes", t.start_bytes},
               {"end_bytes", t.end_bytes},
               {"allocator", kAllocatorNames[static_cast<std::size_t>(report.allocator)]},
               {"reserved_bytes", report.reserved ? Json(report.reserved->peak_reserved_bytes) : Json()},
               {"fragmentation_bytes", report.reserved ? Json(report.reserved->fragmentation_bytes()) : Json()},
               {"overhead_bytes", report.overhead_bytes},
               {"device_bytes", device_bytes(report)},
               {"device", report.device ? Json(report.device->name) : Json()},
               {"device_memory_bytes", report.device ? Json(report.device->memory_bytes.value) : Json()},
               {"peak", moment_json(report, t.peak)},
               {"runners_up", Json::array()},
               {"by_category", Json::object()},
               {"modules", modules_json(report)},
               {"alive_at_peak", alive_json(report)},
               {"alive_at_end", end_json(report)},
               {"not_counted", not_counted(report)}};
  for (const Moment& moment : t.runners_up) json["runners_up"].push_back(moment_json(report, moment));
  for (std::size_t i = 0; i < kCategoryNames.size(); ++i)
    json["by_category"][kCategoryNames[i]] = t.peak_by_category[i];
  return json;
}

std::string memory_csv(const MemoryReport& report) {
  std::string text = "event,change,block,id,category,bytes,total_bytes,op,op_name,recomputed_call\n";
  for (const Change& change : report.timeline.changes) {
    const bool has_op = change.op.has_value();
    fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{},{},{},{},{}\n", change.event,
                   change.kind == ChangeKind::kAlloc ? "alloc" : "free", name_of(change.block.kind), change.block.id,
                   name_of(change.category), change.bytes, change.total_bytes,
                   has_op ? fmt::format("{}", change.op.value()) : "",
                   has_op ? csv_field(report.step.text(report.step[change.op].name)) : "",
                   change.unit == kNoUnit ? "" : fmt::format("{}", report.plan.units[change.unit].call.value()));
  }
  return text;
}

}  // namespace tidemark::cli
