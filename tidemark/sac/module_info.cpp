#include "tidemark/sac/module_info.h"

#include <algorithm>
#include <set>

#include "tidemark/memory/reference_tracker.h"

namespace tidemark::sac {

namespace {

using memory::ReferenceCategory;
using memory::ReferenceModule;
using memory::ReferenceSnapshot;
using memory::ReferenceState;
using step::CallId;
using step::ModuleId;
using step::PassKind;
using step::Step;

std::string qualified_name(const Step& step, ModuleId module) {
  ModuleId root = module;
  while (step[root].parent.has_value()) root = step[root].parent;
  const std::string fqn = step.fqn(module);
  return std::string(step.text(step[root].type)) + (fqn.empty() ? "" : "." + fqn);
}

std::vector<std::string> names_once(const Step& step, std::span<const ModuleId> modules) {
  std::vector<std::string> names;
  std::set<ModuleId> seen;
  for (const ModuleId module : modules)
    if (seen.insert(module).second) names.push_back(qualified_name(step, module));
  return names;
}

struct ModuleTime {
  double forward_ms = 0;
  double backward_ms = 0;
};

// A module's time holds that of the modules inside. A backward op counts where its forward op ran.
std::vector<ModuleTime> module_times(const Step& step, std::span<const double> op_ms) {
  std::vector<ModuleTime> times(step.tables().modules.size());
  for (std::size_t i = 0; i < step.tables().ops.size(); ++i) {
    const step::Op& op = step.tables().ops[i];
    const PassKind kind = step[op.pass].kind;
    if (kind != PassKind::kForward && kind != PassKind::kBackward) continue;
    std::set<ModuleId> counted;  // a module inside itself counts once
    for (CallId call = op.call; call.has_value(); call = step[call].parent) {
      if (!counted.insert(step[call].module).second) continue;
      ModuleTime& time = times[step[call].module.index()];
      (kind == PassKind::kForward ? time.forward_ms : time.backward_ms) += op_ms[i];
    }
  }
  return times;
}

// The last snapshot in a state; all zero for a module that has none, such as a frozen one in backward.
ReferenceSnapshot last(const ReferenceModule& module, ReferenceState state) {
  return module[state].empty() ? ReferenceSnapshot() : module[state].back();
}

ModuleStats memory_stats(const ReferenceModule& module, Rules rules) {
  constexpr auto kActivation = ReferenceCategory::kActivation;
  const ReferenceSnapshot post_forward = last(module, ReferenceState::kPostForward);
  const ReferenceSnapshot pre_backward = last(module, ReferenceState::kPreBackward);
  const ReferenceSnapshot peak_backward = last(module, ReferenceState::kPeakBackward);
  ModuleStats stats;
  stats.parameter_bytes = module.parameter_bytes;
  const bool has_backward = !module[ReferenceState::kPreBackward].empty();
  stats.gradient_bytes = rules == Rules::kReferenceB && !has_backward ? 0 : module.parameter_bytes;
  stats.gradients_before_bytes = pre_backward[ReferenceCategory::kGradient];
  stats.kept_bytes = std::max<std::int64_t>(
      0, post_forward[kActivation] - last(module, ReferenceState::kPreForward)[kActivation] - module.output_bytes);
  stats.backward_activation_bytes = peak_backward[kActivation];
  const std::int64_t temp_before = pre_backward[ReferenceCategory::kTemp];
  const std::int64_t temp_at_peak = peak_backward[ReferenceCategory::kTemp];
  stats.activation_gradient_bytes =
      rules == Rules::kReferenceB ? std::max(temp_at_peak, temp_before) : temp_at_peak - temp_before;
  stats.activations_after_bytes = post_forward[kActivation];
  stats.input_bytes = module.input_bytes;
  stats.output_bytes = module.output_bytes;
  return stats;
}

// By module: its last forward call.
std::vector<CallId> last_calls(const Step& step) {
  std::vector<CallId> calls(step.tables().modules.size());
  for (std::uint32_t i = 0; i < step.tables().calls.size(); ++i) {
    const step::Call& call = step.tables().calls[i];
    if (step[call.pass].kind == PassKind::kForward) calls[call.module.index()] = CallId(i);
  }
  return calls;
}

std::vector<bool> modules_with_children(const Step& step) {
  std::vector<bool> has(step.tables().modules.size(), false);
  for (const step::Module& module : step.tables().modules)
    if (module.parent.has_value()) has[module.parent.index()] = true;
  return has;
}

}  // namespace

ModuleInfo module_info(const Step& step, std::span<const double> op_ms, const ModuleInfoOptions& options) {
  const memory::ReferenceRecord record =
      memory::track_like_reference(step, {.device = options.device, .counts_stale = options.counts_stale});
  const std::vector<ModuleTime> times = module_times(step, op_ms);
  const std::vector<CallId> calls = last_calls(step);
  const std::vector<bool> has_children = modules_with_children(step);
  const StepIndex index(step);
  ModuleInfo info;
  for (const ReferenceModule& module : record.modules) {
    ModuleStats stats = memory_stats(module, options.rules);
    stats.fqn = qualified_name(step, module.module);
    stats.forward_ms = times[module.module.index()].forward_ms;
    stats.backward_ms = times[module.module.index()].backward_ms;
    const CallId call = calls[module.module.index()];
    if (has_children[module.module.index()] && call.has_value()) {
      const ModuleOperators operators = list_operators(index, call, op_ms, options.rules, options.is_unpriced);
      const GreedyOrder order = greedy_order(index, operators, options.rules);
      stats.is_leaf = false;
      stats.sac_bytes = operators.total_bytes;
      stats.sac_ms = operators.total_ms;
      stats.trade_off = trade_off(operators, order, options.rules);
      for (const std::uint32_t i : order.stored) stats.stored_bytes += operators.operators[i].bytes;
    }
    info.order.forward_pre.push_back(stats.fqn);
    info.modules.push_back(std::move(stats));
  }
  info.order.forward_post = names_once(step, record.forward_post);
  info.order.backward_pre = names_once(step, record.backward_pre);
  info.order.backward_post = names_once(step, record.backward_post);
  return info;
}

}  // namespace tidemark::sac
