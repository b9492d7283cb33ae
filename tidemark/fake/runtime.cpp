#include "tidemark/fake/runtime.h"

#include <fmt/format.h>

#include <cstring>

#include "tidemark/base/error.h"
#include "tidemark/fake/engine.h"
#include "tidemark/ops/aten.h"

namespace tidemark::fake {

using ops::Made;
using ops::Row;

Runtime::Runtime(Target target) : target_(target), recorder_(target == Target::kCuda ? "cuda" : "cpu") {}
Runtime::~Runtime() = default;

Storage* Runtime::new_storage(std::int64_t bytes) {
  auto* storage = new Storage;
  storage->bytes = bytes;
  storage->watcher = &recorder_;
  return storage;
}

Tensor Runtime::leaf(ops::DType dtype, const ops::Dims& sizes, bool requires_grad) {
  return leaf(dtype, sizes, ops::contiguous_strides(sizes), requires_grad);
}

Tensor Runtime::leaf(ops::DType dtype, const ops::Dims& sizes, const ops::Dims& strides, bool requires_grad) {
  ops::count_of(sizes);  // refuses what cannot be counted
  Tensor t(new ops::TensorData);
  t->storage = new_storage(ops::bytes_of(dtype, sizes, strides));
  t->storage->holders = 1;
  t->dtype = dtype;
  t->sizes = sizes;
  t->strides = strides;
  t->requires_grad = requires_grad;
  return t;
}

ops::Edge Runtime::edge_of(const Tensor& t) {
  if (t->grad_fn != nullptr) return {t->grad_fn, t->output_nr};
  if (!t->requires_grad) return {};
  if (t->accumulator == nullptr) {
    auto node = std::make_shared<GradNode>();
    node->name = "torch::autograd::AccumulateGrad";
    node->sequence = UINT64_MAX;
    node->leaf = t.get();
    node->outputs = {ops::Meta(t)};
    t->accumulator = std::move(node);
  }
  return {t->accumulator, 0};
}

// The node of an op that has a gradient, with what it keeps of the inputs; none when no input wants a gradient.
// An op that overwrites an argument it keeps gets a clone of it first: `original`. The clone has a node of its own,
// which hides that of the op from a recorder that counts nodes.
std::shared_ptr<GradNode> Runtime::make_node(Call& call, Tensor& original) {
  const Row& row = call.row();
  if (row.node == nullptr || !recorder_.grad_enabled) return nullptr;
  bool is_wanted = false;
  for (const Tensor* t : call.inputs()) is_wanted = is_wanted || (*t).needs_grad();
  if (!is_wanted) return nullptr;
  auto node = std::make_shared<GradNode>();
  node->row = &row;
  node->name = row.node;
  node->sequence = sequence_++;
  // The graph of a large model is the larger part of memory: exact sizes, and what a node has need of.
  node->next.reserve(call.inputs().size());
  node->inputs.reserve(call.inputs().size());
  node->args.reserve(call.args().size());
  node->saved.reserve(row.saves.size() + row.saved_results.size());
  for (const Tensor* t : call.inputs()) {
    node->next.push_back(edge_of(*t));
    node->inputs.emplace_back(*t);
  }
  std::size_t position = 0;
  for (const ops::Arg& arg : call.args()) {
    ops::NodeArg kept{arg.name, ops::None{}, position, 0};
    if (std::holds_alternative<const Tensor*>(arg.value)) {
      kept.count = 1;
    } else if (const auto* many = std::get_if<std::span<const Tensor>>(&arg.value)) {
      kept.count = many->size();
    } else if (const auto* some = std::get_if<ops::Indices>(&arg.value)) {
      ops::Dims given;
      for (const Tensor& t : some->items) {
        kept.count += t ? 1 : 0;
        given.push_back(t ? 1 : 0);
      }
      kept.value = given;
    } else {
      kept.value = arg.value;
    }
    position += kept.count;
    node->args.push_back(kept);
  }
  const auto wants = [&](const char* name) {
    for (const ops::NodeArg& arg : node->args)
      if (std::strcmp(arg.name, name) == 0)
        for (std::size_t i = 0; i < arg.count; ++i)
          if (node->next[arg.begin + i].node != nullptr) return true;
    return false;
  };
  for (const ops::Saved& saved : row.saves) {
    if (saved.when != nullptr && !wants(saved.when)) continue;
    const ops::Value* value = call.find(saved.name);
    if (value == nullptr) continue;
    if (const auto* one = std::get_if<const Tensor*>(value)) {
      if (row.overwrites != nullptr && std::strcmp(row.overwrites, saved.name) == 0) {
        original = ops::clone(*this, **one);
        recorder_.pack(*node, original, saved.name, original->grad_fn.get());
        continue;
      }
      recorder_.pack(*node, **one, saved.name);
    } else if (const auto* many = std::get_if<std::span<const Tensor>>(value)) {
      for (const Tensor& t : *many) recorder_.pack(*node, t, saved.name);
    } else if (const auto* some = std::get_if<ops::Indices>(value)) {
      for (const Tensor& t : some->items)
        if (t) recorder_.pack(*node, t, saved.name);
    }
  }
  return node;
}

void Runtime::attach(Call& call, std::shared_ptr<GradNode> node) {
  const Row& row = call.row();
  std::uint32_t number = 0;
  node->outputs.reserve(call.made().size());
  for (const Made& made : call.made()) {
    node->outputs.push_back(made.tensor ? ops::Meta(made.tensor) : ops::Meta());
    // Of what an op writes into, only the first result is its own; running statistics are not.
    const bool is_own = made.alias != step::AliasKind::kMutates || number == 0;
    if (made.tensor && is_own && ops::is_floating(made.tensor.dtype())) {
      made.tensor->grad_fn = node;
      made.tensor->output_nr = number;
    }
    ++number;
  }
  const auto wants = [&](const char* name) {
    for (const ops::NodeArg& arg : node->args)
      if (std::strcmp(arg.name, name) == 0)
        for (std::size_t i = 0; i < arg.count; ++i)
          if (node->next[arg.begin + i].node != nullptr) return true;
    return false;
  };
  for (const ops::Saved& saved : row.saved_results) {
    if (saved.when != nullptr && !wants(saved.when)) continue;
    for (std::size_t i = 0; i < row.results.size(); ++i)
      if (std::strcmp(row.results[i], saved.name) == 0 && call.made()[i].tensor)
        recorder_.pack(*node, call.made()[i].tensor, saved.name);
  }
}

// An op whose row has no backward must not stand between a parameter and the loss: the step would be wrong. That goes
// for what it writes into, too.
void Runtime::refuse_lost_gradient(const Call& call) const {
  const Row& row = call.row();
  if (row.node != nullptr || row.is_constant || !recorder_.grad_enabled) return;
  bool is_due = false;
  for (const Tensor* t : call.inputs()) is_due = is_due || (*t).needs_grad();
  if (!is_due) return;
  for (const Made& made : call.made()) {
    if (!made.tensor || !ops::is_floating(made.tensor.dtype())) continue;
    throw Error({.kind = ErrorKind::kInput,
                 .place = row.name,
                 .problem = "native models have no backward of this op, and its input needs a gradient",
                 .expected = {},
                 .got = {},
                 .remedy = fmt::format("add node, saves and backward to its row in {}", row.file)});
  }
}

void Runtime::run(Call& call) {
  Tensor original;
  std::shared_ptr<GradNode> node = make_node(call, original);
  recorder_.describe(call);
  call.row().infer(call);
  refuse_lost_gradient(call);
  recorder_.ran(call, original ? nullptr : node.get());
  if (node != nullptr) attach(call, std::move(node));
}

void Runtime::backward(const Tensor& loss) {
  if (loss->grad_fn == nullptr)
    throw Error({.kind = ErrorKind::kInput,
                 .place = "loss",
                 .problem = "the loss depends on no parameter that needs a gradient",
                 .expected = {},
                 .got = {},
                 .remedy = "train at least one parameter"});
  static const ops::Op ones_like("aten.ones_like.default");
  const Tensor ones =
      ones_like(*this, {{"self", loss}, {"pin_memory", false}, {"memory_format", "torch.preserve_format"}});
  const bool was_enabled = recorder_.grad_enabled;
  recorder_.grad_enabled = false;
  run_backward(*this, recorder_, {loss->grad_fn, loss->output_nr}, ones);
  recorder_.grad_enabled = was_enabled;
}

Tensor& Runtime::cast_of(const Tensor& parameter) {
  const auto [entry, is_new] = cast_index_.try_emplace(parameter.get(), casts_.size());
  if (is_new) casts_.emplace_back();
  return casts_[entry->second];
}

Autocast::Autocast(Runtime& rt, ops::DType dtype) : rt_(rt) {
  rt.autocast_ = dtype;
  rt.recorder().autocast = dtype == ops::DType::kBFloat16 ? "bfloat16" : "float16";
}

Autocast::~Autocast() {
  rt_.autocast_.reset();
  rt_.recorder().autocast = nullptr;
  rt_.cast_index_.clear();
  ops::drop_each(rt_.casts_);
}

}  // namespace tidemark::fake
