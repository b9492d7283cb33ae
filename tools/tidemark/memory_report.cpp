#include "memory_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "text_layout.h"
#include "tidemark/base/bytes.h"
#include "tidemark/base/checked.h"
#include "tidemark/base/error.h"
#include "tidemark/memory/module_table.h"
#include "tidemark/step/dump.h"

namespace tidemark::cli {

namespace {

using namespace memory;
using step::printable;

constexpr std::size_t kLargestShown = 5;

std::string module_name(const step::Step& step, step::ModuleId module) {
  if (module.is_none()) return "no module";
  const std::string fqn = step.fqn(module);
  return fmt::format("{} ({})", fqn.empty() ? "the root" : printable(fqn), printable(step.text(step[module].type)));
}

std::string source_text(const step::Step& step, step::OpId op) {
  if (op.is_none() || step[op].source.is_none()) return "not recorded";
  const step::Source& source = step[step[op].source];
  return fmt::format("{}:{} in {}", printable(step.text(source.file)), source.line,
                     printable(step.text(source.function)));
}

std::string percent(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return "";
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string block_name(const Alive& alive) {
  switch (alive.block.kind) {
    case BlockKind::kOriginal:
      return fmt::format("s{}", alive.block.id);
    case BlockKind::kCopy:
      return fmt::format("s{} again", alive.block.id);
    case BlockKind::kRngState:
      return "RNG state";
    case BlockKind::kWorkspace:
      break;
  }
  return "scratch";
}

std::string describe(const MemoryReport& report, const Alive& alive, step::ModuleId module) {
  const std::string where = module_name(report.step, module);
  if (alive.made_by.is_none()) return module.is_none() ? "there at the start" : where;
  return fmt::format("{} in {}", printable(report.step.text(report.step[alive.made_by].name)), where);
}

std::string categories_text(const MemoryReport& report) {
  const std::int64_t peak = report.timeline.peak.total_bytes;
  Table table("<>>");
  for (std::size_t i = 0; i < kCategoryNames.size(); ++i) {
    const std::int64_t bytes = report.timeline.peak_by_category[i];
    if (bytes > 0) table.row({std::string(kCategoryNames[i]), format_bytes_exact(bytes), percent(bytes, peak)});
  }
  table.row({"total", format_bytes_exact(peak), ""});
  return table.text(2);
}

std::string bytes_or_dash(std::int64_t bytes) { return bytes == CallPeak::kNever ? "-" : format_bytes(bytes); }

std::string modules_text(const MemoryReport& report) {
  Table table("<>>>>");
  table.row({"", "calls", "of the peak", "forward peak", "backward peak"});
  for (const ModuleRow& row : module_table(report.step, report.plan, report.timeline, report.depth))
    table.row({elide(module_name(report.step, row.module), 40), format_count(row.calls),
               format_bytes_exact(row.peak_share_bytes), bytes_or_dash(row.forward_peak_bytes),
               bytes_or_dash(row.backward_peak_bytes)});
  table.row({"total", "", format_bytes_exact(report.timeline.peak.total_bytes), "", ""});
  return table.text(2);
}

std::string moments_text(const MemoryReport& report) {
  Table table("><");
  table.row({format_bytes_exact(report.timeline.peak.total_bytes), moment_text(report, report.timeline.peak)});
  for (const Moment& moment : report.timeline.runners_up)
    table.row({format_bytes_exact(moment.total_bytes), moment_text(report, moment)});
  return table.text(2);
}

std::string largest_text(const MemoryReport& report) {
  const std::vector<Alive>& alive = report.timeline.alive_at_peak;
  const std::vector<step::ModuleId> modules = modules_of(report.step, report.plan, alive);
  Table table("><<<");
  for (std::size_t i = 0; i < std::min(kLargestShown, alive.size()); ++i)
    table.row({format_bytes(alive[i].bytes), block_name(alive[i]), std::string(name_of(alive[i].category)),
               describe(report, alive[i], modules[i])});
  return table.text(2);
}

std::string plan_text(const MemoryReport& report) {
  std::size_t saved = 0;
  for (const plan::Unit& unit : report.plan.units) saved += unit.saved_ops.size();
  if (report.plan.units.empty())
    return report.policy == "none" ? "none" : fmt::format("{}, which finds nothing to checkpoint", report.policy);
  return fmt::format("{}: {}, {} saved", report.policy,
                     count_of(static_cast<std::int64_t>(report.plan.units.size()), "checkpointed call"),
                     count_of(static_cast<std::int64_t>(saved), "op"));
}

std::string overview_text(const MemoryReport& report) {
  const Timeline& t = report.timeline;
  const auto bytes = [](std::int64_t b) { return fmt::format("{} ({})", format_bytes_exact(b), format_bytes(b)); };
  Table table("<<");
  table.row({"plan", plan_text(report)});
  table.row({"peak", bytes(t.peak.total_bytes)});
  table.row({"at", moment_text(report, t.peak)});
  table.row({"source", source_text(report.step, t.peak.op)});
  table.row({"start", bytes(t.start_bytes)});
  table.row({"end", bytes(t.end_bytes)});
  return table.text(2);
}

struct Breakdown {
  std::string_view title;
  std::string text;
};

Breakdown breakdown(const MemoryReport& report) {
  switch (report.view) {
    case MemoryView::kModule:
      return {"the peak by module", modules_text(report)};
    case MemoryView::kMoment:
      return {"the peak and the next highest moments", moments_text(report)};
    case MemoryView::kCategory:
      break;
  }
  return {"the peak by category", categories_text(report)};
}

// What the step needs of the device, when more than its tensors is asked about.
std::string device_text(const MemoryReport& report) {
  if (report.allocator == AllocatorModel::kExact && report.overhead_bytes == 0 && !report.device) return {};
  Table table("<>");
  const bool is_exact = report.allocator == AllocatorModel::kExact;
  table.row({is_exact ? "peak" : fmt::format("peak, each rounded up to {} B", format_count(report.rounding_bytes)),
             format_bytes_exact(report.timeline.peak.total_bytes)});
  if (report.reserved) {
    table.row({fmt::format("kept unused by the allocator, in {}",
                           count_of(static_cast<std::int64_t>(report.reserved->segments), "segment")),
               format_bytes_exact(reserved_bytes(report) - report.timeline.peak.total_bytes)});
  }
  if (report.overhead_bytes > 0) table.row({"overhead, as declared", format_bytes_exact(report.overhead_bytes)});
  table.row({"total", format_bytes_exact(device_bytes(report))});
  if (report.device) {
    const std::int64_t room = report.device->memory_bytes.value - device_bytes(report);
    table.row(
        {fmt::format("memory of {}", report.device->name), format_bytes_exact(report.device->memory_bytes.value)});
    table.row({room < 0 ? "too little by" : "left", format_bytes_exact(room < 0 ? -room : room)});
  }
  return table.text(2);
}

std::string not_counted_text(const MemoryReport& report) {
  std::string text;
  for (const std::string& line : not_counted(report)) text += fmt::format("  {}", wrap(line, 2));
  return text;
}

}  // namespace

std::string moment_text(const MemoryReport& report, const Moment& moment) {
  if (moment.event == kNoEvent) return "the start of the step";
  const step::Step& step = report.step;
  std::string text(moment.pass.is_none() ? "before the first pass" : name_of(step[moment.pass].kind));
  const step::ModuleId module = moment.call.is_none() ? step::ModuleId() : step[moment.call].module;
  const std::string where = module_name(step, module);
  if (moment.op.has_value()) {
    text += fmt::format(", {} in {}", printable(step.text(step[moment.op].name)), where);
  } else {
    text += fmt::format(", in {}", where);
  }
  if (moment.unit != kNoUnit)
    text += fmt::format(", recomputing {}", module_name(step, step[report.plan.units[moment.unit].call].module));
  return text;
}

std::vector<std::string> not_counted(const MemoryReport& report) {
  std::vector<std::string> lines;
  if (!report.workspace) {
    lines.emplace_back("kernels' scratch memory: there is no workspace table");
  } else {
    const std::vector<std::uint32_t> rows = join_workspace(report.step, *report.workspace);
    const auto missing = std::count(rows.begin(), rows.end(), kNoRow);
    if (missing > 0)
      lines.push_back(fmt::format("scratch memory of {}, for which {} has no row", count_of(missing, "op"),
                                  printable(report.workspace_file)));
    const std::unordered_set<std::uint32_t> used(rows.begin(), rows.end());
    std::int64_t estimated = 0;
    for (const std::uint32_t row : used)
      if (row != kNoRow && report.workspace->rows[row].estimated) ++estimated;
    if (estimated > 0)
      lines.push_back(fmt::format("what {} of scratch memory got wrong", count_of(estimated, "estimate")));
  }
  if (report.allocator == AllocatorModel::kExact) {
    lines.emplace_back("what the allocator rounds up and keeps unused");
  } else if (report.allocator == AllocatorModel::kRounded) {
    lines.emplace_back("what the allocator keeps unused");
  }
  lines.emplace_back(report.overhead_bytes == 0 ? "device contexts, libraries and other processes" : "other processes");
  return lines;
}

std::int64_t reserved_bytes(const MemoryReport& report) {
  return report.reserved ? report.reserved->peak_reserved_bytes : report.timeline.peak.total_bytes;
}

std::int64_t device_bytes(const MemoryReport& report) {
  const std::optional<std::int64_t> total = checked_add(reserved_bytes(report), report.overhead_bytes);
  if (total) return *total;
  throw Error({.kind = ErrorKind::kInput,
               .place = "--overhead",
               .problem = "the total does not fit 63 bits",
               .expected = "the overhead of a device, such as 600MiB",
               .got = format_bytes(report.overhead_bytes),
               .remedy = {}});
}

std::string memory_text(const MemoryReport& report, const Console& console) {
  std::string text = console.heading(elide(printable(report.file), kMaxColumns)) + "\n";
  text += overview_text(report);
  const auto section = [&](std::string_view title, const std::string& body) {
    if (!body.empty()) text += fmt::format("\n{}\n{}", console.heading(title), body);
  };
  section("bytes alive (f forward, l loss, b backward, r recompute, o optimizer)", memory_chart(report));
  const Breakdown parts = breakdown(report);
  section(parts.title, parts.text);
  section("on the device", device_text(report));
  section("largest at the peak", largest_text(report));
  section("not counted", not_counted_text(report));
  return text;
}

}  // namespace tidemark::cli
