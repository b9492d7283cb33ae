#include "tidemark/ops/call.h"

#include <cstring>

namespace tidemark::ops {

namespace {

bool same(const char* a, const char* b) { return a == b || std::strcmp(a, b) == 0; }

template <class Args>
const Value* find_in(const Args& args, const char* name) {
  for (const auto& arg : args)
    if (same(arg.name, name)) return &arg.value;
  return nullptr;
}

std::int64_t integer_of(const Value* value, std::int64_t otherwise) {
  if (value == nullptr) return otherwise;
  const auto* i = std::get_if<std::int64_t>(value);
  return i != nullptr ? *i : otherwise;
}

double number_of(const Value* value, double otherwise) {
  if (value == nullptr) return otherwise;
  if (const auto* d = std::get_if<double>(value)) return *d;
  if (const auto* i = std::get_if<std::int64_t>(value)) return static_cast<double>(*i);
  if (const auto* b = std::get_if<bool>(value)) return *b ? 1.0 : 0.0;
  return otherwise;
}

bool flag_of(const Value* value, bool otherwise) {
  const auto* b = value == nullptr ? nullptr : std::get_if<bool>(value);
  return b != nullptr ? *b : otherwise;
}

Dims dims_of(const Value* value) {
  const auto* d = value == nullptr ? nullptr : std::get_if<Dims>(value);
  return d != nullptr ? *d : Dims();
}

bool is_there(const Value* value) { return value != nullptr && !std::holds_alternative<None>(*value); }

}  // namespace

Call::Call(Runner& runner, const Row& row, std::span<const Arg> args) : runner_(runner), row_(row), args_(args) {
  inputs_.reserve(args.size());
  for (const Arg& arg : args) {
    if (const auto* one = std::get_if<const Tensor*>(&arg.value)) {
      inputs_.push_back(*one);
    } else if (const auto* many = std::get_if<std::span<const Tensor>>(&arg.value)) {
      for (const Tensor& t : *many) inputs_.push_back(&t);
    } else if (const auto* some = std::get_if<Indices>(&arg.value)) {
      for (const Tensor& t : some->items)
        if (t) inputs_.push_back(&t);
    }
  }
}

const Value* Call::find(const char* name) const { return find_in(args_, name); }
bool Call::has_tensor(const char* name) const {
  const Value* value = find(name);
  return value != nullptr && std::holds_alternative<const Tensor*>(*value);
}
const Tensor& Call::tensor(const char* name) const {
  const Value* value = find(name);
  TIDEMARK_CHECK(value != nullptr && std::holds_alternative<const Tensor*>(*value), "the argument is a tensor");
  return *std::get<const Tensor*>(*value);
}
std::span<const Tensor> Call::list(const char* name) const {
  const Value* value = find(name);
  TIDEMARK_CHECK(value != nullptr && std::holds_alternative<std::span<const Tensor>>(*value), "the argument is a list");
  return std::get<std::span<const Tensor>>(*value);
}
std::int64_t Call::integer(const char* name, std::int64_t otherwise) const { return integer_of(find(name), otherwise); }
double Call::number(const char* name, double otherwise) const { return number_of(find(name), otherwise); }
bool Call::flag(const char* name, bool otherwise) const { return flag_of(find(name), otherwise); }
const char* Call::text(const char* name) const {
  const Value* value = find(name);
  const auto* text = value == nullptr ? nullptr : std::get_if<const char*>(value);
  return text == nullptr ? nullptr : *text;
}
Dims Call::dims(const char* name) const { return dims_of(find(name)); }
Mask Call::mask(const char* name) const {
  const Value* value = find(name);
  const auto* mask = value == nullptr ? nullptr : std::get_if<Mask>(value);
  TIDEMARK_CHECK(mask != nullptr, "the argument is a list of switches");
  return *mask;
}
bool Call::is_given(const char* name) const { return is_there(find(name)); }

void Call::fresh(DType dtype, const Dims& sizes) { fresh(dtype, sizes, contiguous_strides(sizes)); }

void Call::fresh(DType dtype, const Dims& sizes, const Dims& strides) {
  Tensor t(new TensorData);
  t->storage = runner_.new_storage(bytes_of(dtype, sizes, strides));
  ++t->storage->holders;
  t->dtype = dtype;
  t->sizes = sizes;
  t->strides = strides;
  made_.push_back({std::move(t), step::AliasKind::kFresh, 0});
}

void Call::view(std::size_t input, const Dims& sizes, const Dims& strides, std::int64_t offset) {
  const Tensor& base = in(input);
  Tensor t(new TensorData);
  t->storage = base->storage;
  ++t->storage->holders;
  t->dtype = base->dtype;
  t->sizes = sizes;
  t->strides = strides;
  t->offset = offset;
  t->is_view = true;
  made_.push_back({std::move(t), step::AliasKind::kView, static_cast<std::uint32_t>(input)});
}

void Call::mutates(std::size_t input) {
  made_.push_back({in(input), step::AliasKind::kMutates, static_cast<std::uint32_t>(input)});
}

Tensor Op::operator()(Runner& runner, std::initializer_list<Arg> args) const {
  Call call(runner, row_, std::span(args.begin(), args.size()));
  runner.run(call);
  return std::move(call.made().front().tensor);
}

std::vector<Tensor> Op::all(Runner& runner, std::initializer_list<Arg> args) const {
  return run_all(runner, row_, std::span(args.begin(), args.size()));
}

std::vector<Tensor> run_all(Runner& runner, const Row& row, std::span<const Arg> args) {
  Call call(runner, row, args);
  runner.run(call);
  std::vector<Tensor> results;
  results.reserve(call.made().size());
  for (Made& made : call.made()) results.push_back(std::move(made.tensor));
  return results;
}

void Op::none(Runner& runner, std::initializer_list<Arg> args) const {
  Call call(runner, row_, std::span(args.begin(), args.size()));
  runner.run(call);
}

const Tensor& Backward::saved(const char* name) const {
  static const Tensor kNone;
  for (std::size_t i = 0; i < node_.saved.size(); ++i)
    if (same(node_.saved[i].name, name)) return saved_[i];
  return kNone;
}

std::vector<Tensor> Backward::saved_list(const char* name) const {
  std::vector<Tensor> list;
  for (std::size_t i = 0; i < node_.saved.size(); ++i)
    if (same(node_.saved[i].name, name)) list.push_back(saved_[i]);
  const Dims given = dims(name);  // of indices: whether one was given, dimension by dimension
  for (std::size_t i = 0; i < given.size(); ++i)
    if (given[i] == 0) list.insert(list.begin() + static_cast<std::ptrdiff_t>(i), Tensor());
  return list;
}

Backward::Slot Backward::slot(const char* name) const {
  for (const NodeArg& arg : node_.args)
    if (same(arg.name, name)) return {arg.begin, arg.count};
  return {};
}

bool Backward::needs(const char* name) const {
  const Slot s = slot(name);
  for (std::size_t i = 0; i < s.count; ++i)
    if (node_.next[s.begin + i].node != nullptr) return true;
  return false;
}
bool Backward::needs_item(const char* name, std::size_t i) const {
  const Slot s = slot(name);
  return i < s.count && node_.next[s.begin + i].node != nullptr;
}
std::size_t Backward::count(const char* name) const { return slot(name).count; }
const Meta& Backward::input(const char* name, std::size_t i) const { return node_.inputs[slot(name).begin + i]; }
void Backward::give(const char* name, Tensor grad, std::size_t i) { wanted_[slot(name).begin + i] = std::move(grad); }

const Value* Backward::find(const char* name) const { return find_in(node_.args, name); }
bool Backward::is_given(const char* name) const { return is_there(find(name)); }
std::int64_t Backward::integer(const char* name, std::int64_t otherwise) const {
  return integer_of(find(name), otherwise);
}
double Backward::number(const char* name, double otherwise) const { return number_of(find(name), otherwise); }
bool Backward::flag(const char* name, bool otherwise) const { return flag_of(find(name), otherwise); }
Dims Backward::dims(const char* name) const { return dims_of(find(name)); }

}  // namespace tidemark::ops
