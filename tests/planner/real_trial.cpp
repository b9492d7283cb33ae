#include "real_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tidemark/cost/step_cost.h"
#include "tidemark/device/catalog.h"
#include "tidemark/zoo/record.h"

namespace tidemark::test {

namespace {

using namespace step;

constexpr std::size_t kMostBreakpoints = 25;

zoo::Config small(const char* family, std::int64_t blocks) {
  const std::string_view name = family;
  if (name == "gpt2")
    return zoo::Gpt2Config{.layers = blocks, .width = 32, .heads = 2, .vocabulary = 64, .positions = 16};
  if (name == "bert")
    return zoo::BertConfig{.layers = blocks, .width = 32, .inner = 64, .heads = 2, .vocabulary = 64, .positions = 16};
  if (name == "t5")
    return zoo::T5Config{.layers = blocks, .width = 32, .inner = 64, .heads = 2, .head = 16, .vocabulary = 64};
  if (name == "vit")
    return zoo::ViTConfig{
        .layers = blocks, .width = 32, .inner = 64, .heads = 2, .image = 16, .patch = 4, .classes = 10};
  if (name == "resnet") return zoo::ResNetConfig{.blocks = {blocks, 1, 1, 1}, .width = 4, .classes = 10};
  if (name == "unet") return zoo::UNetConfig{.width = 8, .depth = blocks, .groups = 4};
  if (name == "toy-gpt") return zoo::ToyGptConfig{.layers = blocks};
  zoo::LlamaConfig llama;
  llama.layers = blocks;
  llama.width = 32;
  llama.inner = 64;
  llama.heads = llama.kv_heads = 2;
  llama.vocabulary = 64;
  llama.positions = 16;
  return llama;
}

// Names of the modules that forward calls are of, by how deep they lie in the tree of calls.
std::vector<std::set<std::string>> levels_of(const Step& step) {
  std::vector<std::set<std::string>> levels;
  const StepTables& t = step.tables();
  std::vector<std::size_t> depth(t.calls.size(), 0);
  for (std::uint32_t i = 0; i < t.calls.size(); ++i) {
    if (t.calls[i].parent.has_value()) depth[i] = depth[t.calls[i].parent.index()] + 1;
    if (step[t.calls[i].pass].kind != PassKind::kForward) continue;
    if (levels.size() <= depth[i]) levels.resize(depth[i] + 1);
    levels[depth[i]].insert(step.fqn(t.calls[i].module));
  }
  return levels;
}

// Names of ops in the forward, by the bytes of what they make.
std::vector<std::string> largest_ops(const Step& step) {
  std::map<std::string, std::int64_t> bytes;
  for (const Op& op : step.tables().ops) {
    if (const PassKind kind = step[op.pass].kind; kind != PassKind::kForward && kind != PassKind::kLoss) continue;
    std::int64_t& sum = bytes[std::string(step.text(op.name))];
    for (const Output& output : step.outputs(op)) sum += step[step[output.tensor].storage].bytes;
  }
  std::vector<std::pair<std::int64_t, std::string>> order;
  for (const auto& [name, sum] : bytes) order.emplace_back(-sum, name);
  std::sort(order.begin(), order.end());
  std::vector<std::string> names;
  for (const auto& [sum, name] : order) names.push_back(name);
  return names;
}

// The modules of a level, as far as there are not too many plans then.
void add_level(const Step& step, const std::set<std::string>& level, std::int64_t most, PlanRules& rules) {
  for (const std::string& name : level) {
    if (name.empty()) continue;
    rules.units.push_back(name);
    if (count_plans(step, most, rules) > most) rules.units.pop_back();
  }
}

// As many levels as there may be with nothing saved.
PlanRules deep_rules(const Step& step, std::int64_t most) {
  PlanRules rules;
  rules.never_save = largest_ops(step);
  for (const std::set<std::string>& level : levels_of(step)) add_level(step, level, most, rules);
  return rules;
}

// The first level that gives a choice, and as many ops to save as there may be.
PlanRules saving_rules(const Step& step, std::int64_t most) {
  PlanRules rules;
  rules.never_save = largest_ops(step);
  for (const std::set<std::string>& level : levels_of(step)) {
    add_level(step, level, most / 16, rules);
    if (!rules.units.empty() && count_plans(step, most, rules) >= 4) break;
  }
  for (const std::string& name : largest_ops(step)) {
    PlanRules more = rules;
    std::erase(more.never_save, name);
    if (count_plans(step, most, more) <= most) rules = more;
  }
  return rules;
}

}  // namespace

std::vector<RealStep> small_native_steps(std::int64_t most_blocks) {
  std::vector<RealStep> steps;
  for (const char* family : {"gpt2", "llama", "bert", "t5", "vit", "resnet", "unet", "toy-gpt"})
    for (std::int64_t blocks = 1; blocks <= most_blocks; ++blocks)
      steps.push_back(
          {fmt::format("{} of {}", family, blocks),
           zoo::record(small(family, blocks), {.batch = 16, .image = family == std::string_view("unet") ? 16 : 0})});
  return steps;
}

void try_real_step(const RealStep& real, std::int64_t most, TrialCounts& counts) {
  const cost::StepCost cost = cost::price_step(real.step, device::find_device("cpu"));
  for (const bool is_deep : {true, false}) {
    const PlanRules rules = is_deep ? deep_rules(real.step, most) : saving_rules(real.step, most);
    const planner::Times times = planner::times_of(cost);
    const std::vector<Tried> tried = try_all(real.step, times, most, nullptr, 1, rules);
    if (tried.size() < 2) {
      ++counts.passed_over;
      continue;
    }
    planner::PlannerOptions options;
    options.space.units = rules.units;
    options.space.never_save = rules.never_save;
    const planner::PreparedStep prepared(real.step, cost, options);
    compare_with_all({.name = fmt::format("{}, {}", real.name, is_deep ? "units" : "saved ops"),
                      .seed = 1,
                      .most_breakpoints = kMostBreakpoints},
                     prepared, tried, counts);
  }
}

}  // namespace tidemark::test
