#include "tidemark/plan/policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "tidemark/base/error.h"
#include "tidemark/base/utf8.h"
#include "tidemark/plan/event_index.h"
#include "tidemark/plan/groups.h"
#include "tidemark/plan/legality.h"
#include "tidemark/plan/policy_ops.h"

namespace tidemark::plan {

namespace {

using namespace step;

constexpr std::string_view kEveryPrefix = "every:";

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool has_numeric_name(const Step& step, ModuleId module) { return is_number(step.text(step[module].name)); }

// By module: whether at least two of its children have a number for a name and the same class, or one such child runs
// several times in a pass, as a layer does whose weights all layers share.
std::vector<bool> find_containers(const Step& step) {
  const std::vector<Module>& modules = step.tables().modules;
  std::vector<bool> is_container(modules.size(), false);
  std::map<std::pair<ModuleId, std::string_view>, int> repeats;  // by parent and class
  for (std::uint32_t i = 0; i < modules.size(); ++i) {
    if (modules[i].parent.is_none() || !has_numeric_name(step, ModuleId(i))) continue;
    if (++repeats[{modules[i].parent, step.text(modules[i].type)}] == 2) is_container[modules[i].parent.index()] = true;
  }
  for (const Call& call : step.tables().calls)
    if (const ModuleId parent = step[call.module].parent; call.index > 0 && parent.has_value())
      if (has_numeric_name(step, call.module)) is_container[parent.index()] = true;
  return is_container;
}

class PlanMaker {
 public:
  PlanMaker(const Step& step, const Policy& policy, const PolicyOptions& options)
      : step_(step), policy_(policy), options_(options), index_(index_events(step)) {}

  Plan run() {
    Plan plan;
    const std::vector<bool> chosen = chosen_modules();
    std::vector<bool> covered(step_.tables().calls.size(), false);  // a unit, or inside one
    for (std::uint32_t i = 0; i < covered.size(); ++i) {
      const Call& call = step_.tables().calls[i];
      covered[i] = call.parent.has_value() && covered[call.parent.index()];
      if (covered[i] || !chosen[call.module.index()]) continue;
      Unit unit = make_unit(CallId(i));
      if (!can_be_checkpointed(unit)) continue;
      covered[i] = true;
      plan.units.push_back(std::move(unit));
    }
    std::sort(plan.units.begin(), plan.units.end(), [&](const Unit& a, const Unit& b) {
      return index_.regions[a.call.index()].begin < index_.regions[b.call.index()].begin;
    });
    return plan;
  }

 private:
  // By module. Blocks are counted in the order of their first calls, so that the numbering of ids does not matter.
  std::vector<bool> chosen_modules() const {
    std::vector<bool> is_block(step_.tables().modules.size(), false);
    for (const ModuleId module : find_blocks(step_)) is_block[module.index()] = true;
    std::vector<bool> chosen(is_block.size(), false);
    std::vector<bool> seen(is_block.size(), false);
    std::int64_t count = 0;
    for (const Event& event : step_.tables().events) {
      if (event.kind != EventKind::kEnter) continue;
      const std::size_t module = step_[CallId(event.id)].module.index();
      if (!is_block[module] || seen[module]) continue;
      seen[module] = true;
      chosen[module] = policy_.kind != PolicyKind::kEvery || ++count % policy_.every == 0;
    }
    return chosen;
  }

  Unit make_unit(CallId call) const {
    Unit unit{call, {}, options_.preserve_rng, options_.early_stop};
    const std::vector<Group> groups = find_groups(step_, index_, call);
    const std::vector<bool> is_wanted = wanted(groups);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (!groups[i].must_save && !(is_wanted[i] && groups[i].can_save())) continue;
      unit.saved_ops.insert(unit.saved_ops.end(), groups[i].savers.begin(), groups[i].savers.end());
    }
    std::sort(unit.saved_ops.begin(), unit.saved_ops.end());
    return unit;
  }

  // Who asks for no RNG state gets other random numbers in the recompute; anything else that is wrong is no option.
  bool can_be_checkpointed(const Unit& unit) const {
    const std::vector<Violation> violations = check(step_, index_, {{unit}});
    return std::all_of(violations.begin(), violations.end(),
                       [](const Violation& violation) { return violation.kind == ViolationKind::kRandom; });
  }

  // By group: whether the selective policy wants to save an op of it. Matrix products are counted as they run.
  std::vector<bool> wanted(const std::vector<Group>& groups) const {
    std::vector<bool> is_wanted(groups.size(), false);
    if (policy_.kind != PolicyKind::kSelective) return is_wanted;
    std::vector<std::pair<std::uint32_t, std::size_t>> matmuls;  // position, group
    for (std::size_t i = 0; i < groups.size(); ++i) {
      for (const OpId op : groups[i].ops) {
        const PolicyOpKind kind = policy_op_kind(step_.text(step_[op].name));
        if (kind == PolicyOpKind::kMatmul) matmuls.emplace_back(index_.begins[op.index()], i);
        if (kind == PolicyOpKind::kAttention || step_[op].flags.has(OpFlag::kCollective)) is_wanted[i] = true;
      }
    }
    std::sort(matmuls.begin(), matmuls.end());
    for (std::size_t k = 0; k < matmuls.size(); k += 2) is_wanted[matmuls[k].second] = true;
    return is_wanted;
  }

  const Step& step_;
  const Policy policy_;
  const PolicyOptions options_;
  const EventIndex index_;
};

[[noreturn]] void refuse_policy(std::string_view text, std::string_view place, std::string problem) {
  throw Error({.kind = ErrorKind::kInput,
               .place = std::string(place),
               .problem = std::move(problem),
               .expected = "none, full, every:K or selective",
               .got = quote(text),
               .remedy = "every:2 checkpoints every second block"});
}

}  // namespace

Policy parse_policy(std::string_view text, std::string_view place) {
  if (text == "none") return {PolicyKind::kNone};
  if (text == "full") return {PolicyKind::kFull};
  if (text == "selective") return {PolicyKind::kSelective};
  if (!text.starts_with(kEveryPrefix)) refuse_policy(text, place, "there is no such policy");
  const std::string_view digits = text.substr(kEveryPrefix.size());
  std::int64_t every = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), every);
  if (!is_number(digits) || error != std::errc() || every < 1 || end != digits.data() + digits.size())
    refuse_policy(text, place, "the number after every: is not a whole number above zero");
  return {PolicyKind::kEvery, every};
}

std::string policy_text(const Policy& policy) {
  switch (policy.kind) {
    case PolicyKind::kNone:
      return "none";
    case PolicyKind::kFull:
      return "full";
    case PolicyKind::kSelective:
      return "selective";
    case PolicyKind::kEvery:
      break;
  }
  return fmt::format("{}{}", kEveryPrefix, policy.every);
}

std::vector<ModuleId> find_blocks(const Step& step) {
  const std::vector<Module>& modules = step.tables().modules;
  const std::vector<bool> is_container = find_containers(step);
  std::vector<bool> in_block(modules.size(), false);
  std::vector<ModuleId> blocks;
  for (std::uint32_t i = 0; i < modules.size(); ++i) {
    const ModuleId parent = modules[i].parent;
    if (parent.is_none()) continue;
    in_block[i] = in_block[parent.index()];
    if (in_block[i] || !is_container[parent.index()] || !has_numeric_name(step, ModuleId(i))) continue;
    in_block[i] = true;
    blocks.push_back(ModuleId(i));
  }
  return blocks;
}

Plan make_plan(const Step& step, const Policy& policy, const PolicyOptions& options) {
  if (policy.kind == PolicyKind::kNone) return {};
  return PlanMaker(step, policy, options).run();
}

}  // namespace tidemark::plan
