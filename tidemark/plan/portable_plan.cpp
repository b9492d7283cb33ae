#include "tidemark/plan/portable_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tidemark/base/error.h"
#include "tidemark/base/rounding.h"
#include "tidemark/plan/event_index.h"
#include "tidemark/plan/trained_calls.h"
#include "tidemark/step/fingerprint.h"

namespace tidemark::plan {

namespace {

using namespace step;

[[noreturn]] void refuse(std::string place, std::string problem, std::string expected, std::string got,
                         std::string remedy) {
  throw Error({.kind = ErrorKind::kInput,
               .place = std::move(place),
               .problem = std::move(problem),
               .expected = std::move(expected),
               .got = std::move(got),
               .remedy = std::move(remedy)});
}

constexpr const char* kRemedy = "plan this step, or check the plan against the step it was made for";

std::string name_in(const Step& step, ModuleId module, StringId name) {
  const std::string fqn = step.fqn(module);
  return fqn.empty() ? std::string(step.text(name)) : fmt::format("{}.{}", fqn, step.text(name));
}

Shape shape_of(const Step& step, TensorId tensor) {
  const Layout& layout = step[step[tensor].layout];
  const auto sizes = step.sizes(layout);
  return {.dtype = std::string(step::name_of(layout.dtype)), .sizes = {sizes.begin(), sizes.end()}};
}

// The ops of a call and of the calls inside it, in the order in which they run.
std::vector<OpId> ops_of(const Step& step, const EventIndex& index, CallId call) {
  std::vector<OpId> ops;
  const EventRange region = index.regions[call.index()];
  for (std::uint32_t at = region.begin; at < region.end; ++at)
    if (step.tables().events[at].kind == EventKind::kBegin) ops.emplace_back(step.tables().events[at].id);
  return ops;
}

// How many of a call's ops its recompute gets to: with early stop, those before the last tensor that is saved.
std::uint32_t reach_of(const Step& step, const EventIndex& index, const Unit& unit) {
  const EventRange region = index.regions[unit.call.index()];
  std::uint32_t begun = 0;
  std::uint32_t reach = 0;
  for (std::uint32_t at = region.begin; at < region.end; ++at) {
    const Event& event = step.tables().events[at];
    if (event.kind == EventKind::kBegin) ++begun;
    if (event.kind == EventKind::kPack && step[SaveId(event.id)].hooked) reach = begun;
  }
  return unit.early_stop ? reach : begun;
}

// Names of the buffers by storage; the first of several names.
std::map<StorageId, std::string> buffer_names(const Step& step) {
  std::map<StorageId, std::string> names;
  for (const Binding& binding : step.tables().bindings)
    if (binding.kind == BindingKind::kBuffer)
      names.emplace(step[binding.tensor].storage, name_in(step, binding.module, binding.name));
  return names;
}

std::vector<std::string> changed_buffers(const Step& step, const std::vector<OpId>& ops,
                                         const std::map<StorageId, std::string>& names) {
  std::set<std::string> changed;
  for (const OpId op : ops)
    for (const Output& output : step.outputs(step[op]))
      if (output.alias == AliasKind::kMutates)
        if (const auto found = names.find(step[output.tensor].storage); found != names.end())
          changed.insert(found->second);
  return {changed.begin(), changed.end()};
}

void describe_model(const Step& step, PortablePlan& portable) {
  const StepTables& t = step.tables();
  for (std::uint32_t i = 0; i < t.modules.size(); ++i)
    portable.modules.push_back({.name = step.fqn(ModuleId(i)), .type = std::string(step.text(t.modules[i].type))});
  for (const Binding& binding : t.bindings)
    if (binding.kind == BindingKind::kParameter)
      portable.parameters.push_back({.name = name_in(step, binding.module, binding.name),
                                     .shape = shape_of(step, binding.tensor),
                                     .trainable = binding.trainable});
}

std::vector<std::string> checkpointed_modules(const Step& step) {
  std::vector<std::string> names;
  for (const Region& region : step.tables().regions) {
    if (region.kind != RegionKind::kCheckpoint) continue;
    std::string name = region.call.is_none() ? std::string() : step.fqn(step[region.call].module);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

// What the root is given, by tensor. Of several calls that are given the same kinds of tensors, the largest of each
// size.
std::vector<Shape> model_inputs(const Step& step, const TrainedCalls& trained) {
  std::vector<Shape> largest;
  for (std::uint32_t at = 0; at < trained.number.size(); ++at) {
    const Call& call = step[CallId(at)];
    if (step[call.module].parent.has_value() || trained.is_trained[at] == 0) continue;
    std::vector<Shape> given;
    for (const TensorId input : step.inputs(call)) given.push_back(shape_of(step, input));
    if (largest.empty()) largest = given;
    bool is_alike = given.size() == largest.size();
    for (std::size_t i = 0; is_alike && i < given.size(); ++i)
      is_alike = given[i].dtype == largest[i].dtype && given[i].sizes.size() == largest[i].sizes.size();
    if (!is_alike) continue;
    for (std::size_t i = 0; i < given.size(); ++i)
      for (std::size_t d = 0; d < given[i].sizes.size(); ++d)
        largest[i].sizes[d] = std::max(largest[i].sizes[d], given[i].sizes[d]);
  }
  return largest;
}

std::vector<CallCounts> count_calls(const Step& step, const Plan& plan, const TrainedCalls& trained) {
  std::map<ModuleId, std::vector<std::uint32_t>> counts;
  for (const Unit& unit : plan.units) counts[step[unit.call].module].assign(trained.micro_batches, 0);
  for (std::uint32_t i = 0; i < trained.number.size(); ++i) {
    const Call& call = step[CallId(i)];
    const auto found = counts.find(call.module);
    if (found != counts.end() && trained.is_trained[i] != 0) ++found->second[step[call.pass].micro_batch];
  }
  std::vector<CallCounts> result;
  for (auto& [module, by_micro_batch] : counts)
    result.push_back({.module = step.fqn(module), .by_micro_batch = std::move(by_micro_batch)});
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.module < b.module; });
  return result;
}

std::vector<std::uint32_t> find_early_steps(const Step& step, const TrainedCalls& trained) {
  std::set<std::uint32_t> after;
  for (const Pass& pass : step.tables().passes)
    if (pass.kind == PassKind::kOptimizer && pass.micro_batch + 1 < trained.micro_batches)
      after.insert(pass.micro_batch);
  return {after.begin(), after.end()};
}

// (module, call, micro-batch, pass), which names a call.
struct CallKey {
  std::string module;
  std::uint32_t call = 0;
  std::uint32_t micro_batch = 0;
  std::string pass;

  friend auto operator<=>(const CallKey&, const CallKey&) = default;
};

}  // namespace

std::int64_t rounding_of(std::string_view against, const std::optional<std::int64_t>& said) {
  if (said) return *said;
  return against == "exact" ? 1 : kCudaRoundingBytes;
}

bool may_round_to(std::string_view against, std::int64_t rounding_bytes) {
  if (against == "exact") return rounding_bytes == 1;
  if (against == "reserved") return rounding_bytes == kCudaRoundingBytes;
  return rounding_bytes >= 1 && rounding_bytes <= kMostRoundingBytes;
}

PortablePlan describe(const Step& step, const Plan& plan, const PlanFacts& facts) {
  const EventIndex index = index_events(step);
  const TrainedCalls trained = find_trained_calls(step, index);
  const std::map<StorageId, std::string> buffers = buffer_names(step);
  PortablePlan portable{.fingerprint = fingerprint(step),
                        .facts = facts,
                        .modules = {},
                        .parameters = {},
                        .inputs = model_inputs(step, trained),
                        .checkpointed = checkpointed_modules(step),
                        .bodies = {},
                        .calls = count_calls(step, plan, trained),
                        .early_steps = find_early_steps(step, trained),
                        .units = {}};
  describe_model(step, portable);
  std::map<Body, std::uint32_t> bodies;
  for (const Unit& unit : plan.units) {
    const Call& call = step[unit.call];
    const std::vector<OpId> ops = ops_of(step, index, unit.call);
    Body body;
    PortableUnit words{.module = step.fqn(call.module),
                       .call = trained.number[unit.call.index()],
                       .micro_batch = step[call.pass].micro_batch,
                       .pass = std::string(step::name_of(step[call.pass].kind)),
                       .preserve_rng = unit.preserve_rng,
                       .early_stop = unit.early_stop,
                       .body = 0,
                       .saved = {},
                       .reach = reach_of(step, index, unit),
                       .buffers = changed_buffers(step, ops, buffers)};
    for (std::uint32_t i = 0; i < ops.size(); ++i) {
      body.ops.emplace_back(step.text(step[ops[i]].name));
      if (unit.decision(ops[i]) == Decision::kSave) words.saved.push_back(i);
    }
    for (const TensorId input : step.inputs(call)) body.inputs.push_back(shape_of(step, input));
    const auto [found, is_new] = bodies.emplace(std::move(body), static_cast<std::uint32_t>(portable.bodies.size()));
    if (is_new) portable.bodies.push_back(found->first);
    words.body = found->second;
    portable.units.push_back(std::move(words));
  }
  return portable;
}

Plan find_in(const Step& step, const PortablePlan& portable, const std::string& name) {
  const Hash128 own = fingerprint(step);
  if (portable.fingerprint != own)
    refuse(name + ": step", "the plan is of another step", "the fingerprint " + own.hex(), portable.fingerprint.hex(),
           kRemedy);
  const EventIndex index = index_events(step);
  const TrainedCalls trained = find_trained_calls(step, index);
  std::map<CallKey, CallId> calls;
  for (std::uint32_t i = 0; i < step.tables().calls.size(); ++i) {
    const Call& call = step.tables().calls[i];
    const Pass& pass = step[call.pass];
    calls.emplace(
        CallKey{step.fqn(call.module), trained.number[i], pass.micro_batch, std::string(step::name_of(pass.kind))},
        CallId(i));
  }
  Plan plan;
  for (std::size_t i = 0; i < portable.units.size(); ++i) {
    const PortableUnit& words = portable.units[i];
    const std::string place = fmt::format("{}: units[{}]", name, i);
    const auto found = calls.find({words.module, words.call, words.micro_batch, words.pass});
    if (found == calls.end())
      refuse(place,
             fmt::format("the step has no call {} of module '{}' in its {} pass", words.call, words.module, words.pass),
             "a call of the step", {}, kRemedy);
    const std::vector<OpId> ops = ops_of(step, index, found->second);
    Unit unit{
        .call = found->second, .saved_ops = {}, .preserve_rng = words.preserve_rng, .early_stop = words.early_stop};
    for (const std::uint32_t position : words.saved) {
      if (position >= ops.size())
        refuse(place, fmt::format("the call runs {} ops", ops.size()), "positions below that", std::to_string(position),
               kRemedy);
      unit.saved_ops.push_back(ops[position]);
    }
    plan.units.push_back(std::move(unit));
  }
  PortablePlan described = describe(step, plan, portable.facts);
  if (portable.inputs.empty()) described.inputs.clear();
  if (described != portable)
    refuse(name, "the plan says of the model what the step does not", "modules, parameters, calls and ops of the step",
           {}, kRemedy);
  return plan;
}

}  // namespace tidemark::plan
