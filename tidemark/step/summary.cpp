#include "tidemark/step/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "tidemark/base/bytes.h"
#include "tidemark/step/fingerprint.h"

namespace tidemark::step {

namespace {

std::vector<bool> find_allocated(const StepTables& t) {
  std::vector<bool> allocated(t.storages.size(), false);
  for (const Event& event : t.events)
    if (event.kind == EventKind::kAlloc) allocated[event.id] = true;
  return allocated;
}

std::vector<PassCount> count_passes(const StepTables& t) {
  std::array<PassCount, kPassKindNames.size()> counts{};
  for (const Pass& pass : t.passes) ++counts[static_cast<std::size_t>(pass.kind)].passes;
  for (const Op& op : t.ops) ++counts[static_cast<std::size_t>(t.passes[op.pass.index()].kind)].ops;
  std::vector<PassCount> result;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    counts[i].kind = static_cast<PassKind>(i);
    if (counts[i].passes > 0) result.push_back(counts[i]);
  }
  return result;
}

std::vector<OpCount> count_ops(const Step& step) {
  std::map<std::string_view, std::int64_t> counts;
  for (const Op& op : step.tables().ops) ++counts[step.text(op.name)];
  std::vector<OpCount> result;
  for (const auto& [name, count] : counts) result.push_back({std::string(name), count});
  std::stable_sort(result.begin(), result.end(), [](const OpCount& a, const OpCount& b) { return a.count > b.count; });
  return result;
}

std::vector<RoleBytes> count_roles(const StepTables& t, const std::vector<bool>& allocated) {
  std::array<RoleBytes, kRoleNames.size()> counts{};
  for (std::size_t i = 0; i < t.storages.size(); ++i) {
    RoleBytes& entry = counts[static_cast<std::size_t>(t.storages[i].role)];
    ++entry.storages;
    entry.bytes += t.storages[i].bytes;
    if (!allocated[i]) entry.resident_bytes += t.storages[i].bytes;
  }
  std::vector<RoleBytes> result;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    counts[i].role = static_cast<Role>(i);
    if (counts[i].storages > 0) result.push_back(counts[i]);
  }
  return result;
}

std::int64_t count_saved_bytes(const StepTables& t) {
  std::vector<bool> saved(t.storages.size(), false);
  for (const Save& save : t.saves) saved[t.tensors[save.tensor.index()].storage.index()] = true;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < saved.size(); ++i) {
    const Role role = t.storages[i].role;
    if (saved[i] && role != Role::kParameter && role != Role::kBuffer && role != Role::kInput)
      bytes += t.storages[i].bytes;
  }
  return bytes;
}

std::vector<LargeStorage> find_largest(const Step& step, std::size_t count) {
  const StepTables& t = step.tables();
  std::vector<std::uint32_t> order(t.storages.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto larger = [&](std::uint32_t a, std::uint32_t b) {
    return t.storages[a].bytes != t.storages[b].bytes ? t.storages[a].bytes > t.storages[b].bytes : a < b;
  };
  count = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(), larger);

  std::vector<LargeStorage> result;
  for (std::size_t i = 0; i < count; ++i) {
    const Storage& s = t.storages[order[i]];
    result.push_back({StorageId(order[i]), s.bytes, s.role, {}});
  }
  // One pass over bindings, ops and events finds a name for all of them.
  std::map<std::uint32_t, std::string> names;
  for (const LargeStorage& large : result) {
    names[large.storage.value()];
    if (step[large.storage].of.has_value()) names[step[large.storage].of.value()];
  }
  const auto name = [&](StorageId id, const auto& make) {
    const auto entry = names.find(id.value());
    if (entry != names.end() && entry->second.empty()) entry->second = make();
  };
  for (const Binding& b : t.bindings)
    name(step[b.tensor].storage, [&] {
      const std::string module = step.fqn(b.module);
      return module.empty() ? std::string(step.text(b.name)) : fmt::format("{}.{}", module, step.text(b.name));
    });
  for (const Op& op : t.ops)
    for (const Output& out : step.outputs(op))
      if (out.alias == AliasKind::kFresh)
        name(step[out.tensor].storage, [&] {
          const std::string module = op.call.is_none() ? "" : step.fqn(step[op.call].module);
          return module.empty() ? std::string(step.text(op.name)) : fmt::format("{} in {}", step.text(op.name), module);
        });
  for (LargeStorage& large : result) {
    large.description = names[large.storage.value()];
    const StorageId of = step[large.storage].of;
    if (large.description.empty() && of.has_value() && !names[of.value()].empty())
      large.description = fmt::format("of {}", names[of.value()]);
  }
  return result;
}

std::vector<std::string> find_missing(const Step& step) {
  const StepTables& t = step.tables();
  std::vector<std::string> missing;
  const auto has_pass = [&](PassKind kind) {
    return std::any_of(t.passes.begin(), t.passes.end(), [&](const Pass& p) { return p.kind == kind; });
  };
  if (!has_pass(PassKind::kBackward)) missing.emplace_back("no backward pass is recorded");
  if (!has_pass(PassKind::kOptimizer)) missing.emplace_back("no optimizer pass is recorded");
  if (t.modules.empty()) missing.emplace_back("no modules are recorded");
  const auto count_ops_where = [&](const auto& test) {
    return static_cast<std::int64_t>(std::count_if(t.ops.begin(), t.ops.end(), test));
  };
  const std::int64_t unpriced = count_ops_where([](const Op& op) { return op.flops == Op::kUnknown; });
  if (unpriced > 0) missing.push_back(fmt::format("{} of {} ops have no FLOP count", unpriced, t.ops.size()));
  const std::int64_t unplaced = count_ops_where([](const Op& op) { return op.source.is_none(); });
  if (unplaced > 0) missing.push_back(fmt::format("{} of {} ops have no source line", unplaced, t.ops.size()));
  // Rows of notes may share one long text, so their number alone bounds nothing.
  constexpr std::size_t kShownBytes = 1 << 20;
  std::size_t shown_bytes = 0;
  for (std::size_t i = 0; i < t.notes.size(); ++i) {
    if (shown_bytes > kShownBytes) {
      missing.push_back(fmt::format("and {} more notes", t.notes.size() - i));
      break;
    }
    missing.push_back(fmt::format("{}: {}", step.text(t.notes[i].kind), step.text(t.notes[i].text)));
    shown_bytes += missing.back().size();
  }
  for (const ExtraSection& extra : t.extras)
    missing.push_back(fmt::format("the section \"{}\" is kept, but this version does not know it", extra.name));
  missing.emplace_back("kernel workspace is not part of a step");
  return missing;
}

}  // namespace

StepSummary summarize(const Step& step, const SummaryOptions& options) {
  const StepTables& t = step.tables();
  const std::vector<bool> allocated = find_allocated(t);
  return {.fingerprint = fingerprint(step),
          .meta = t.meta,
          .modules = static_cast<std::int64_t>(t.modules.size()),
          .calls = static_cast<std::int64_t>(t.calls.size()),
          .ops = static_cast<std::int64_t>(t.ops.size()),
          .tensors = static_cast<std::int64_t>(t.tensors.size()),
          .storages = static_cast<std::int64_t>(t.storages.size()),
          .saves = static_cast<std::int64_t>(t.saves.size()),
          .saved_bytes = count_saved_bytes(t),
          .events = static_cast<std::int64_t>(t.events.size()),
          .passes = count_passes(t),
          .op_counts = count_ops(step),
          .roles = count_roles(t, allocated),
          .largest = find_largest(step, options.largest_count),
          .missing = find_missing(step)};
}

}  // namespace tidemark::step
