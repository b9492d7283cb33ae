// tidemark inspect STEP: what a recorded step holds, on one screen, as JSON, or event by event.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "commands.h"
#include "step_argument.h"
#include "text_layout.h"
#include "tidemark/base/bytes.h"
#include "tidemark/step/dump.h"
#include "tidemark/step/summary.h"

namespace tidemark::cli {

namespace {

using step::printable;
using step::StepSummary;

// Lists that a recorder may fill without bound are cut in the text; --json has them whole.
constexpr std::size_t kMaxTextRows = 10;
constexpr std::size_t kMaxLabelColumns = 24;

struct InspectOptions {
  std::string step;
  bool dump = false;
  std::size_t largest = 5;
  std::size_t ops = 8;
  NativeOptions native;
};

std::string others(std::size_t count) {
  return fmt::format("and {}", count_of(static_cast<std::int64_t>(count), "other"));
}

std::string describe_sizes(const StepSummary& s) {
  return fmt::format("{}, {}, {}, {}, {}, {}", count_of(s.modules, "module"), count_of(s.calls, "call"),
                     count_of(s.ops, "op"), count_of(s.tensors, "tensor"), count_of(s.storages, "storage"),
                     count_of(s.events, "event"));
}

std::string describe_passes(const StepSummary& s) {
  std::vector<std::string> parts;
  for (const step::PassCount& pass : s.passes) {
    const std::string times = pass.passes == 1 ? "" : fmt::format(" x {}", format_count(pass.passes));
    parts.push_back(fmt::format("{}{}: {}", name_of(pass.kind), times, count_of(pass.ops, "op")));
  }
  return parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string describe_saved(const StepSummary& s) {
  return fmt::format("{} by autograd, holding {} besides parameters, buffers and inputs", count_of(s.saves, "save"),
                     format_bytes(s.saved_bytes));
}

using Fields = std::vector<std::pair<std::string, std::string>>;

// Labels and values in two columns; a value that is a long list takes several lines.
std::string fields_text(const Fields& fields) {
  std::size_t width = 0;
  for (const auto& [label, value] : fields) width = std::max(width, display_width(label));
  std::string text;
  for (const auto& [label, value] : fields) {
    const std::string padding(width - display_width(label), ' ');
    text += value.empty() ? fmt::format("  {}\n", label)
                          : fmt::format("  {}{}  {}", label, padding, wrap(value, width + 4));
  }
  return text;
}

void add_meta(Fields& fields, const step::Meta& meta) {
  const std::size_t shown = std::min(meta.size(), kMaxTextRows);
  for (std::size_t i = 0; i < shown; ++i)
    fields.emplace_back(elide(printable(meta[i].first), kMaxLabelColumns),
                        elide(printable(meta[i].second), kMaxColumns - kMaxLabelColumns - 4));
  if (shown < meta.size()) fields.emplace_back(others(meta.size() - shown), "");
}

std::string overview_text(const StepSummary& s) {
  Fields fields = {{"fingerprint", s.fingerprint.hex()}};
  add_meta(fields, s.meta);
  fields.emplace_back("holds", describe_sizes(s));
  fields.emplace_back("passes", describe_passes(s));
  fields.emplace_back("saved", describe_saved(s));
  return fields_text(fields);
}

std::string ops_text(const StepSummary& s, std::size_t shown) {
  Table table("><");
  shown = std::min(shown, s.op_counts.size());
  std::int64_t left = s.ops;
  for (std::size_t i = 0; i < shown; ++i) {
    table.row({format_count(s.op_counts[i].count), printable(s.op_counts[i].name)});
    left -= s.op_counts[i].count;
  }
  if (shown < s.op_counts.size()) table.row({format_count(left), others(s.op_counts.size() - shown)});
  return table.text(2);
}

std::string roles_text(const StepSummary& s) {
  Table table("<>>>");
  table.row({"", "storages", "at the start", "whole step"});
  step::RoleBytes total;
  for (const step::RoleBytes& role : s.roles) {
    table.row({std::string(name_of(role.role)), format_count(role.storages), format_bytes(role.resident_bytes),
               format_bytes(role.bytes)});
    total.storages += role.storages;
    total.resident_bytes += role.resident_bytes;
    total.bytes += role.bytes;
  }
  table.row({"total", format_count(total.storages), format_bytes(total.resident_bytes), format_bytes(total.bytes)});
  return table.text(2);
}

std::string largest_text(const StepSummary& s) {
  Table table("><<<");
  for (const step::LargeStorage& large : s.largest)
    table.row({format_bytes(large.bytes), fmt::format("s{}", large.storage.value()), std::string(name_of(large.role)),
               large.description.empty() ? "there at the start" : printable(large.description)});
  return table.text(2);
}

std::string missing_text(const StepSummary& s) {
  std::string text;
  const std::size_t shown = std::min(s.missing.size(), kMaxTextRows);
  for (std::size_t i = 0; i < shown; ++i) text += "  " + wrap(printable(s.missing[i]), 2);
  if (shown < s.missing.size()) text += fmt::format("  {}\n", others(s.missing.size() - shown));
  return text;
}

std::string summary_text(const StepSummary& s, const InspectOptions& options, const Console& console) {
  std::string text = console.heading(elide(printable(options.step), kMaxColumns)) + "\n";
  text += overview_text(s);
  const auto section = [&](std::string_view title, const std::string& body) {
    if (!body.empty()) text += fmt::format("\n{}\n{}", console.heading(title), body);
  };
  section("ops by kind", ops_text(s, options.ops));
  section("bytes by role", roles_text(s));
  section("largest storages", largest_text(s));
  section("missing", missing_text(s));
  return text;
}

Json summary_json(const StepSummary& s, const InspectOptions& options) {
  Json json = {{"file", options.step},
               {"fingerprint", s.fingerprint.hex()},
               {"meta", Json::object()},
               {"modules", s.modules},
               {"calls", s.calls},
               {"ops", s.ops},
               {"tensors", s.tensors},
               {"storages", s.storages},
               {"events", s.events},
               {"saves", s.saves},
               {"saved_bytes", s.saved_bytes},
               {"passes", Json::array()},
               {"op_counts", Json::array()},
               {"roles", Json::array()},
               {"largest", Json::array()},
               {"missing", s.missing}};
  for (const auto& [key, value] : s.meta) json["meta"][key] = value;
  for (const step::PassCount& pass : s.passes)
    json["passes"].push_back({{"kind", name_of(pass.kind)}, {"passes", pass.passes}, {"ops", pass.ops}});
  for (const step::OpCount& op : s.op_counts) json["op_counts"].push_back({{"name", op.name}, {"count", op.count}});
  for (const step::RoleBytes& role : s.roles)
    json["roles"].push_back({{"role", name_of(role.role)},
                             {"storages", role.storages},
                             {"resident_bytes", role.resident_bytes},
                             {"bytes", role.bytes}});
  for (const step::LargeStorage& large : s.largest)
    json["largest"].push_back({{"storage", large.storage.value()},
                               {"bytes", large.bytes},
                               {"role", name_of(large.role)},
                               {"description", large.description}});
  return json;
}

ExitCode inspect(const InspectOptions& options, const Console& console) {
  const step::Step step = read_step_argument(options.step, options.native);
  if (options.dump && !console.json()) {
    console.print(step::dump(step));
    return ExitCode::kOk;
  }
  const StepSummary summary = step::summarize(step, {.largest_count = options.largest});
  if (!console.json()) {
    console.print(summary_text(summary, options, console));
    return ExitCode::kOk;
  }
  Json json = summary_json(summary, options);
  if (options.dump) json["dump"] = step::dump(step);
  console.print_json(json);
  return ExitCode::kOk;
}

}  // namespace

Command add_inspect(CLI::App& root) {
  CLI::App* app = new_command(
      root, {.name = "inspect",
             .summary = "Summarise a recorded training step",
             .examples = {{{"build/tidemark inspect examples/steps/two_layer_mlp.step.jsonl", "what it holds"},
                           {"build/tidemark inspect examples/steps/two_layer_mlp.step.jsonl --dump", "every event"},
                           {"build/tidemark inspect examples/steps/two_layer_mlp.step.jsonl --json", "for scripts"}}}});
  const auto options = std::make_shared<InspectOptions>();
  app->add_option(std::string(kStepName), options->step, kStepHelp)->required();
  app->add_flag("--dump", options->dump, "show the whole step as text, event by event");
  add_count(*app, "--largest", options->largest, "list the N largest storages");
  add_count(*app, "--ops", options->ops, "list the N most frequent kinds of ops");
  add_native_options(*app, options->native);
  return {app, [options](Console& console) { return inspect(*options, console); }};
}

}  // namespace tidemark::cli
