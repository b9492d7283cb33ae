#include "tidemark/sac/module_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tidemark/base/error.h"
#include "tidemark/base/rounding.h"
#include "tidemark/cost/reference_roofline.h"
#include "tidemark/step/op_name.h"

namespace tidemark::sac {

namespace {

using plan::EventIndex;
using plan::EventRange;
using step::AliasKind;
using step::OpId;
using step::Step;
using step::StorageId;

// The estimator's list of views, by family; it differs from its runtime estimator's.
bool is_reference_view(std::string_view family) {
  static const std::unordered_set<std::string_view> families = {
      "as_strided",   "detach",          "diagonal",         "expand",       "expand_as", "movedim",      "narrow",
      "permute",      "select",          "squeeze",          "transpose",    "t",         "real",         "imag",
      "view_as_real", "view_as_complex", "unflatten",        "unfold",       "unsqueeze", "view",         "view_as",
      "unbind",       "split",           "split_with_sizes", "vsplit",       "hsplit",    "tensor_split", "chunk",
      "swapaxes",     "slice",           "_reshape_alias",   "_unsafe_view", "_conj",     "alias",        "as_strided_",
      "detach_",      "squeeze_",        "swapaxes_",        "swapdims_",    "t_",        "transpose_",   "unsqueeze_"};
  return families.contains(family);
}

bool is_reference_skipped(std::string_view family, Rules rules) {
  return family == "detach" || family == "lift_fresh" || (rules == Rules::kReferenceM && family == "clone");
}

bool ends_as_in_place(std::string_view family) {
  if (family.starts_with("__")) return family.starts_with("__i");
  return family.ends_with('_');
}

// Fresh storages of an op, each once.
std::vector<StorageId> output_storages(const Step& step, const step::Op& op, bool fresh_only) {
  std::vector<StorageId> storages;
  for (const step::Output& output : step.outputs(op)) {
    if (fresh_only && output.alias != AliasKind::kFresh) continue;
    const StorageId storage = step[output.tensor].storage;
    if (std::find(storages.begin(), storages.end(), storage) == storages.end()) storages.push_back(storage);
  }
  return storages;
}

std::int64_t allocated_bytes(const Step& step, StorageId id) {
  const step::Storage& storage = step[id];
  if (!step.text(storage.device).starts_with("cuda")) return storage.bytes;
  return round_up(storage.bytes, kCudaRoundingBytes);
}

std::span<const OpId> ops_inside(const StepIndex& index, step::CallId call) {
  const EventRange region = index.events.regions[call.index()];
  const auto before = [&](OpId op, std::uint32_t position) { return index.events.begins[op.index()] < position; };
  const auto first = std::lower_bound(index.forward_ops.begin(), index.forward_ops.end(), region.begin, before);
  const auto last = std::lower_bound(first, index.forward_ops.end(), region.end, before);
  return {first, last};
}

class Lister {
 public:
  Lister(const StepIndex& index, step::CallId call, std::span<const double> op_ms, Rules rules,
         std::span<const std::uint8_t> is_unpriced)
      : index_(index), step_(*index.step), call_(call), op_ms_(op_ms), rules_(rules), is_unpriced_(is_unpriced) {}

  ModuleOperators list() {
    ModuleOperators result;
    result.call = call_;
    result.must_store_random = step_.inputs(step_[call_]).empty();
    for (const OpId op : ops_inside(index_, call_)) add(op, result.operators);
    if (rules_ == Rules::kTidemark)
      free_what_the_call_returns(result.operators);
    else
      free_the_last(result.operators);
    for (const Operator& o : result.operators) {
      result.total_bytes += o.bytes;
      result.total_ms += o.ms;
    }
    return result;
  }

 private:
  void add(OpId id, std::vector<Operator>& operators) {
    const step::Op& op = step_[id];
    const std::string_view family = step::op_family(step_.text(op.name));
    const auto number = static_cast<std::uint32_t>(operators.size());
    if (rules_ != Rules::kTidemark && is_reference_skipped(family, rules_)) {
      for (const StorageId storage : output_storages(step_, op, false)) maker_.try_emplace(storage.value(), kSkipped);
      return;
    }
    Operator result;
    result.op = id;
    result.name = std::string(family);
    result.ms = op_ms_[id.index()];
    result.is_unpriced = !is_unpriced_.empty() && is_unpriced_[id.index()] != 0;
    const bool by_record = rules_ == Rules::kTidemark;
    const auto storages = output_storages(step_, op, by_record);
    result.is_view_like = by_record ? returns_views_only(op) : is_reference_view(family);
    result.is_random = op.flags.has(step::OpFlag::kRandom);
    if (!result.is_view_like)
      for (const StorageId storage : storages) result.bytes += allocated_bytes(step_, storage);
    result.is_saved_by_autograd = is_saved(op, by_record);
    if (by_record ? changes_an_input(op) : ends_as_in_place(family)) result.changes = maker_of(op, number);
    for (const StorageId storage : output_storages(step_, op, false)) maker_.try_emplace(storage.value(), number);
    operators.push_back(std::move(result));
  }

  bool returns_views_only(const step::Op& op) const {
    const auto outputs = step_.outputs(op);
    return !outputs.empty() && std::all_of(outputs.begin(), outputs.end(), [](const step::Output& output) {
      return output.alias == AliasKind::kView || output.alias == AliasKind::kExisting;
    });
  }

  // Buffers apart: who runs an op again has them restored (plan/legality.h).
  bool is_changed_input(const step::Output& output) const {
    return output.alias == AliasKind::kMutates && step_[step_[output.tensor].storage].role != step::Role::kBuffer;
  }

  bool changes_an_input(const step::Op& op) const {
    const auto outputs = step_.outputs(op);
    return std::any_of(outputs.begin(), outputs.end(),
                       [&](const step::Output& output) { return is_changed_input(output); });
  }

  // The estimator calls an op without any output saved.
  bool is_saved(const step::Op& op, bool by_record) const {
    const auto storages = output_storages(step_, op, false);
    if (storages.empty()) return !by_record;
    const std::uint32_t end = index_.events.regions[call_.index()].end;
    return std::all_of(storages.begin(), storages.end(),
                       [&](StorageId storage) { return index_.first_save[storage.index()] < end; });
  }

  // The first operator of the call that returned what `op` changes.
  std::uint32_t maker_of(const step::Op& op, std::uint32_t self) const {
    for (const step::Output& output : step_.outputs(op)) {
      if (rules_ == Rules::kTidemark && !is_changed_input(output)) continue;
      const auto found = maker_.find(step_[output.tensor].storage.value());
      if (found == maker_.end()) return self;
      if (found->second == kSkipped) {
        throw Error({.kind = ErrorKind::kInput,
                     .place = fmt::format("module {}", step_.fqn(step_[call_].module)),
                     .problem = fmt::format("{} changes the result of an op that the estimator does not list",
                                            step_.text(op.name)),
                     .expected = {},
                     .got = {},
                     .remedy = "take Tidemark's own rules for this module"});
      }
      return found->second;
    }
    return self;
  }

  // What the call returns is kept anyway: storing its maker costs nothing.
  void free_what_the_call_returns(std::vector<Operator>& operators) const {
    std::unordered_set<std::uint32_t> returned;
    for (const step::TensorId tensor : step_.outputs(step_[call_])) returned.insert(step_[tensor].storage.value());
    for (Operator& o : operators) {
      if (o.is_view_like) continue;
      for (const StorageId storage : output_storages(step_, step_[o.op], true))
        if (returned.contains(storage.value())) o.bytes -= allocated_bytes(step_, storage);
    }
  }

  static constexpr std::uint32_t kSkipped = 0xFFFFFFFFu;

  const StepIndex& index_;
  const Step& step_;
  step::CallId call_;
  std::span<const double> op_ms_;
  Rules rules_;
  std::span<const std::uint8_t> is_unpriced_;
  std::unordered_map<std::uint32_t, std::uint32_t> maker_;  // by storage: the operator that first returned it
};

}  // namespace

ReferenceTraits reference_traits(std::string_view family, Rules rules) {
  return {.is_view_like = is_reference_view(family),
          .is_in_place = ends_as_in_place(family),
          .is_skipped = is_reference_skipped(family, rules)};
}

void free_the_last(std::span<Operator> operators) {
  auto last = operators.rbegin();
  while (last != operators.rend() && (last->is_view_like || last->changes)) ++last;
  if (last != operators.rend()) last->bytes = 0;
}

StepIndex::StepIndex(const Step& recorded)
    : step(&recorded),
      events(plan::index_events(recorded)),
      first_save(recorded.tables().storages.size(), EventIndex::kNever) {
  const auto& tables = recorded.tables();
  for (std::uint32_t i = 0; i < tables.events.size(); ++i) {
    const step::Event& event = tables.events[i];
    if (event.kind == step::EventKind::kPack) {
      const step::Save& save = tables.saves[event.id];
      std::uint32_t& first = first_save[recorded[save.tensor].storage.index()];
      if (save.hooked) first = std::min(first, i);
    } else if (event.kind == step::EventKind::kBegin) {
      const auto op = OpId(event.id);
      if (recorded[recorded[op].pass].kind == step::PassKind::kForward) forward_ops.push_back(op);
    }
  }
}

ModuleOperators list_operators(const StepIndex& index, step::CallId call, std::span<const double> op_ms, Rules rules,
                               std::span<const std::uint8_t> is_unpriced) {
  return Lister(index, call, op_ms, rules, is_unpriced).list();
}

}  // namespace tidemark::sac
