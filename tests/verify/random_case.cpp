#include "random_case.h"

#include <fmt/format.h>

#include <optional>

#include "../support/random.h"
#include "../support/random_plan.h"
#include "../support/random_step.h"
#include "../support/random_workspace.h"
#include "../support/shake_step.h"
#include "tidemark/base/error.h"

namespace tidemark::test {

namespace {

constexpr std::size_t kRunnersUp = 64;  // as many as a replay gives

std::string text_of(const verify::Change& c) {
  return fmt::format("{}{} of {} ({}), then {}; event {}, op {}, unit {}", c.comes ? "+" : "", c.bytes, c.block,
                     c.category, c.total_bytes, c.event, c.op.is_none() ? -1 : static_cast<int>(c.op.value()),
                     c.unit ? static_cast<int>(*c.unit) : -1);
}

std::string name_of_block(const memory::BlockId& block) {
  const bool has_parts = block.kind == memory::BlockKind::kRngState || block.kind == memory::BlockKind::kWorkspace;
  const std::string name = fmt::format("{} {}", name_of(block.kind), block.id);
  return has_parts ? fmt::format("{} part {}", name, block.part) : name;
}

// In the words of the other replay. A timeline's changes do not tell pass and call; its peak does.
verify::Change in_words(const memory::Change& c) {
  const bool comes = c.kind == memory::ChangeKind::kAlloc;
  verify::Change change{.comes = comes,
                        .bytes = comes ? c.bytes : -c.bytes,
                        .total_bytes = c.total_bytes,
                        .block = name_of_block(c.block),
                        .category = std::string(name_of(c.category)),
                        .event = c.event,
                        .op = c.op,
                        .call = {},
                        .pass = {},
                        .unit = {},
                        .stretch = 0};
  if (c.unit != memory::kNoUnit) change.unit = c.unit;
  return change;
}

std::string difference_of_changes(const memory::Timeline& timeline, const verify::Replayed& replayed) {
  for (std::size_t i = 0; i < std::max(timeline.changes.size(), replayed.changes.size()); ++i) {
    if (i >= timeline.changes.size())
      return fmt::format("change {}: verify has {}, memory no more", i, text_of(replayed.changes[i]));
    const verify::Change theirs = in_words(timeline.changes[i]);
    if (i >= replayed.changes.size())
      return fmt::format("change {}: memory has {}, verify no more", i, text_of(theirs));
    verify::Change ours = replayed.changes[i];
    ours.call = {};
    ours.pass = {};
    ours.stretch = 0;
    if (ours != theirs) return fmt::format("change {}:\n  memory {}\n  verify {}", i, text_of(theirs), text_of(ours));
  }
  return {};
}

memory::Moment moment_after(const verify::Replayed& replayed, std::size_t changes) {
  memory::Moment moment;
  moment.total_bytes = replayed.start_bytes;
  if (changes == 0) return moment;
  const verify::Change& c = replayed.changes[changes - 1];
  return {c.total_bytes, c.event, c.op, c.call, c.pass, c.unit.value_or(memory::kNoUnit)};
}

std::string difference_of_runners_up(const memory::Timeline& timeline, const verify::Replayed& replayed) {
  if (timeline.runners_up.size() != std::min<std::size_t>(kRunnersUp, replayed.runners_up.size()))
    return fmt::format("the number of runners-up: memory {}, verify {}", timeline.runners_up.size(),
                       replayed.runners_up.size());
  for (std::size_t i = 0; i < timeline.runners_up.size(); ++i)
    if (moment_after(replayed, replayed.runners_up[i]) != timeline.runners_up[i])
      return fmt::format("runner-up {}: memory {} at event {}, verify {} at event {}", i,
                         timeline.runners_up[i].total_bytes, timeline.runners_up[i].event,
                         moment_after(replayed, replayed.runners_up[i]).total_bytes,
                         moment_after(replayed, replayed.runners_up[i]).event);
  return {};
}

std::string difference_of_calls(const memory::Timeline& timeline, const verify::Replayed& replayed) {
  for (std::uint32_t i = 0; i < timeline.calls.size(); ++i) {
    const auto found = replayed.calls.find(step::CallId(i));
    const verify::CallPeak peak = found == replayed.calls.end() ? verify::CallPeak{} : found->second;
    const memory::CallPeak ours{peak.forward_bytes.value_or(memory::CallPeak::kNever),
                                peak.backward_bytes.value_or(memory::CallPeak::kNever)};
    if (ours != timeline.calls[i])
      return fmt::format("the peaks of call {}: memory {} and {}, verify {} and {}", i, timeline.calls[i].forward_bytes,
                         timeline.calls[i].backward_bytes, ours.forward_bytes, ours.backward_bytes);
  }
  return {};
}

std::string difference_of_peaks(const memory::Timeline& timeline, const verify::Replayed& replayed) {
  if (timeline.peak.total_bytes != replayed.peak_bytes) return "the peak";
  if (timeline.peak_change != static_cast<std::int64_t>(replayed.peak_change)) return "the moment of the peak";
  if (moment_after(replayed, replayed.peak_change) != timeline.peak) return "what is said about the peak";
  for (std::size_t i = 0; i < memory::kCategoryNames.size(); ++i) {
    const auto ours = replayed.peak_by_category.find(std::string(memory::kCategoryNames[i]));
    if (timeline.peak_by_category[i] != (ours == replayed.peak_by_category.end() ? 0 : ours->second))
      return fmt::format("category {} of the peak", memory::kCategoryNames[i]);
  }
  return {};
}

std::string difference_of_ends(const memory::Timeline& timeline, const verify::Replayed& replayed) {
  if (timeline.end_bytes != replayed.end_bytes) return "the bytes at the end";
  std::map<std::string, verify::Leftover> theirs;
  for (const memory::Leftover& left : timeline.alive_at_end)
    theirs[name_of_block(left.block)] = {left.bytes, std::string(name_of(left.reason))};
  for (const auto& [block, left] : replayed.alive_at_end) {
    const auto found = theirs.find(block);
    if (found == theirs.end()) return block + " at the end, which only verify has";
    if (found->second != left)
      return fmt::format("{} at the end: memory {} {}, verify {} {}", block, found->second.bytes, found->second.reason,
                         left.bytes, left.reason);
  }
  return theirs.size() == replayed.alive_at_end.size() ? "" : "something at the end that only memory has";
}

// The result of a replay, or nothing when it refuses.
template <class Replay>
auto attempt(const Replay& replay) -> std::optional<decltype(replay())> {
  try {
    return replay();
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

RandomCase random_case(std::uint64_t seed) {
  Random random(seed);
  const std::uint64_t shake_seed = random.next();
  const step::Step plain = random_step(seed, {.with_extras = false});
  step::Step step = random.chance(70) ? shake(plain, shake_seed) : plain;
  plan::Plan plan = random_plan(step, random.next());
  memory::WorkspaceTable table;
  if (random.chance(70)) table = random_workspace(step, random);
  const bool rounds = random.chance(20);
  const bool early_stop = random.chance(80);
  const bool preserve_rng = random.chance(80);
  return {std::move(step), std::move(plan), std::move(table), rounds ? 512 : 1, early_stop, preserve_rng};
}

std::string difference(const RandomCase& c, verify::Mutation mutation, bool* is_refused) {
  const auto timeline = attempt([&] {
    return memory::replay(c.step, c.plan,
                          {.workspace = &c.table,
                           .round_to_bytes = c.round_to_bytes,
                           .early_stop = c.early_stop,
                           .preserve_rng = c.preserve_rng,
                           .keep_changes = true,
                           .keep_alive_at_peak = false,
                           .runner_up_count = kRunnersUp});
  });
  const auto replayed = attempt([&] {
    return verify::replay(c.step, c.plan, {&c.table, c.round_to_bytes, c.early_stop, c.preserve_rng, mutation});
  });
  if (is_refused != nullptr) *is_refused = !timeline;
  if (!timeline || !replayed) {
    if (timeline.has_value() == replayed.has_value()) return {};
    return timeline ? "only verify refuses the plan" : "only memory refuses the plan";
  }
  if (timeline->start_bytes != replayed->start_bytes) return "the bytes at the start";
  std::string found = difference_of_changes(*timeline, *replayed);
  if (found.empty()) found = difference_of_peaks(*timeline, *replayed);
  if (found.empty()) found = difference_of_runners_up(*timeline, *replayed);
  if (found.empty()) found = difference_of_calls(*timeline, *replayed);
  return found.empty() ? difference_of_ends(*timeline, *replayed) : found;
}

}  // namespace tidemark::test
