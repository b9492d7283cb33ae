#include "tidemark/planner/block_items.h"

#include <algorithm>
#include <unordered_map>

#include "tidemark/plan/policies.h"
#include "tidemark/sac/greedy_order.h"

namespace tidemark::planner {

namespace {

using step::Step;

bool is_inside(const plan::EventRange& inner, const plan::EventRange& outer) {
  return outer.begin <= inner.begin && inner.end <= outer.end;
}

// Of these candidates, which come outer ones first, those that lie in none before.
std::vector<std::uint32_t> outermost(const Space& space, const std::vector<std::uint32_t>& candidates) {
  std::vector<std::uint32_t> result;
  for (const std::uint32_t c : candidates)
    if (result.empty() || !is_inside(space.candidates[c].region, space.candidates[result.back()].region))
      result.push_back(c);
  return result;
}

}  // namespace

UnitItems unit_items(const sac::StepIndex& index, const Space& space, std::uint32_t candidate,
                     std::span<const double> op_ms) {
  const Candidate& c = space.candidates[candidate];
  const sac::ModuleOperators operators = sac::list_operators(index, c.call, op_ms);
  const sac::GreedyOrder order = sac::greedy_order(index, operators);
  UnitItems unit{.candidate = candidate, .items = {}, .choices = {}, .total_bytes = operators.total_bytes};
  std::unordered_map<std::uint32_t, std::uint32_t> choice_of;  // by op
  for (std::uint32_t i = 0; i < c.choices.size(); ++i)
    for (const step::OpId op : c.choices[i].savers) choice_of.emplace(op.value(), i);
  for (const std::uint32_t member : order.stored) unit.fixed_bytes += operators.operators[member].bytes;
  for (const sac::Candidate& group : order.candidates) {
    std::optional<std::uint32_t> choice;
    for (const std::uint32_t member : group.members)
      if (const auto found = choice_of.find(operators.operators[member].op.value()); found != choice_of.end())
        choice = found->second;
    if (!choice) continue;
    const Choice& decided = c.choices[*choice];
    if (decided.freedom == Freedom::kAlwaysSave) unit.fixed_bytes += group.bytes;
    if (decided.freedom != Freedom::kFree || !decided.is_reached) continue;
    unit.items.push_back({group.bytes, decided.time_ps});
    unit.choices.push_back(*choice);
  }
  return unit;
}

std::vector<std::uint32_t> block_candidates(const Step& step, const Space& space, const SpaceOptions& options) {
  std::vector<std::uint32_t> all(space.candidates.size());
  for (std::uint32_t c = 0; c < all.size(); ++c) all[c] = c;
  if (!options.units.empty()) return outermost(space, all);
  std::vector<bool> is_block(step.tables().modules.size(), false);
  for (const step::ModuleId module : plan::find_blocks(step)) is_block[module.index()] = true;
  std::vector<std::uint32_t> chosen;
  for (const std::uint32_t c : all)
    if (is_block[step[space.candidates[c].call].module.index()]) chosen.push_back(c);
  if (chosen.empty())
    for (const std::uint32_t c : all)
      if (step[space.candidates[c].call].parent.has_value()) chosen.push_back(c);
  return outermost(space, chosen.empty() ? all : chosen);
}

plan::Unit unit_with(const Space& space, const UnitItems& unit, const std::vector<std::uint8_t>& kept) {
  const Candidate& c = space.candidates[unit.candidate];
  std::vector<std::uint8_t> saved(c.choices.size(), 0);
  for (std::size_t i = 0; i < c.choices.size(); ++i) saved[i] = c.choices[i].freedom == Freedom::kAlwaysSave ? 1 : 0;
  for (std::size_t i = 0; i < unit.items.size(); ++i)
    if (kept[i] != 0) saved[unit.choices[i]] = 1;
  return make_unit(c, saved);
}

}  // namespace tidemark::planner
