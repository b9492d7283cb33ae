// Choosing elements by their positions, and writing to positions.

#include "tidemark/base/error.h"
#include "tidemark/ops/aten.h"
#include "tidemark/ops/formulas.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

const Value kOne = std::int64_t{1};

void infer_embedding(Call& call) {
  const Tensor& weight = call.in(0);
  Dims sizes = call.in(1).sizes();
  sizes.push_back(weight.sizes()[1]);
  call.fresh(weight.dtype(), sizes);
}

void infer_embedding_backward(Call& call) {
  call.fresh(call.in(0).dtype(), Dims{call.integer("num_weights"), call.in(0).sizes().back()});
}

void embedding_backward(Backward& b) {
  static const Op op("aten.embedding_dense_backward.default");
  b.give("weight", op(b.runner(), {{"grad_output", b.grad()},
                                   {"indices", b.saved("indices")},
                                   {"num_weights", b.input("weight").sizes[0]},
                                   {"padding_idx", b.integer("padding_idx", -1)},
                                   {"scale_grad_by_freq", false}}));
}

Tensor zeros_with_options(Backward& b) {
  static const Op zeros("aten.new_zeros.default");
  return zeros(b.runner(), {{"self", b.grad()},
                            {"size", b.input("self").sizes},
                            {"dtype", dtype_word(b.input("self").dtype)},
                            {"layout", "torch.strided"},
                            {"device", "cpu"}});
}

// -- one index, dimension by dimension --

void infer_gather(Call& call) { call.fresh(call.in(0).dtype(), call.tensor("index").sizes()); }

Tensor gathered(Backward& b) {
  static const Op op("aten.gather.default");
  return op(b.runner(), {{"self", b.grad()}, {"dim", b.integer("dim")}, {"index", b.saved("index")}});
}

void gather_backward(Backward& b) {
  static const Op zeros("aten.new_zeros.default");
  static const Op scatter_add("aten.scatter_add.default");
  Runner& r = b.runner();
  const Tensor blank = zeros(r, {{"self", b.grad()}, {"size", b.input("self").sizes}});
  b.give("self",
         scatter_add(r, {{"self", blank}, {"dim", b.integer("dim")}, {"index", b.saved("index")}, {"src", b.grad()}}));
}

// What was overwritten has no gradient.
Tensor blanked(Backward& b) {
  static const Op op("aten.scatter.value");
  return op(b.runner(), {{"self", b.grad()}, {"dim", b.integer("dim")}, {"index", b.saved("index")}, {"value", 0}});
}

void scatter_backward(Backward& b) {
  if (b.needs("self")) b.give("self", blanked(b));
  if (b.needs("src")) b.give("src", gathered(b));
}

void scatter_value_backward(Backward& b) { b.give("self", blanked(b)); }

void scatter_add_backward(Backward& b) {
  if (b.needs("self")) b.give("self", b.grad());
  if (b.needs("src")) b.give("src", gathered(b));
}

// -- one index for a whole dimension --

void infer_index_select(Call& call) {
  const Tensor& self = call.in(0);
  Dims sizes = self.sizes();
  sizes[wrap_dim(call.integer("dim"), sizes.size())] = count_of(call.tensor("index").sizes());
  call.fresh(self.dtype(), sizes);
}

Tensor selected(Backward& b) {
  static const Op op("aten.index_select.default");
  return op(b.runner(), {{"self", b.grad()}, {"dim", b.integer("dim")}, {"index", b.saved("index")}});
}

void index_select_backward(Backward& b) {
  static const Op index_add("aten.index_add.default");
  const Tensor blank = zeros_with_options(b);
  b.give("self",
         index_add(b.runner(),
                   {{"self", blank}, {"dim", b.integer("dim")}, {"index", b.saved("index")}, {"source", b.grad()}}));
}

void index_add_backward(Backward& b) {
  Runner& r = b.runner();
  if (b.needs("self")) b.give("self", b.grad());
  if (b.needs("source"))
    b.give("source", maybe_multiply(r, expand(r, selected(b), b.saved("source").sizes()), given(b, "alpha", kOne)));
}

Tensor index_filled(Backward& b) {
  static const Op op("aten.index_fill.int_Scalar");
  return op(b.runner(), {{"self", b.grad()}, {"dim", b.integer("dim")}, {"index", b.saved("index")}, {"value", 0}});
}

void index_copy_backward(Backward& b) {
  if (b.needs("self")) b.give("self", index_filled(b));
  if (b.needs("source")) b.give("source", expand(b.runner(), selected(b), b.saved("source").sizes()));
}

void index_fill_backward(Backward& b) { b.give("self", index_filled(b)); }

// -- an index for each of several dimensions --

// The indices by dimension; what is left out at the end is not indexed.
std::vector<Tensor> indices_of(const Call& call) {
  const Value* value = call.find("indices");
  if (const auto* some = std::get_if<Indices>(value)) return {some->items.begin(), some->items.end()};
  const auto list = call.list("indices");
  return {list.begin(), list.end()};
}

// NumPy's rule: the indices, broadcast, stand where the dimensions they replace stood; in front, if those lay apart.
void infer_index(Call& call) {
  const Tensor& self = call.in(0);
  const std::vector<Tensor> indices = indices_of(call);
  Dims chosen;
  std::size_t first = self.rank();
  std::size_t last = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i]) continue;
    if (indices[i].dtype() == DType::kBool)
      throw Error({.kind = ErrorKind::kInput,
                   .place = "aten.index.Tensor",
                   .problem = "how many elements a mask chooses depends on its values, which native tensors have not",
                   .expected = {},
                   .got = {},
                   .remedy = "index by positions, or fill what is not wanted (masked_fill, where)"});
    chosen = count == 0 ? indices[i].sizes() : broadcast(chosen, indices[i].sizes());
    first = std::min(first, i);
    last = i;
    ++count;
  }
  const bool is_apart = count > 0 && last - first + 1 != count;
  Dims sizes;
  if (is_apart)
    for (const std::int64_t size : chosen) sizes.push_back(size);
  for (std::size_t i = 0; i < self.rank(); ++i) {
    if (i == first && !is_apart)
      for (const std::int64_t size : chosen) sizes.push_back(size);
    if (i >= indices.size() || !indices[i]) sizes.push_back(self.sizes()[i]);
  }
  call.fresh(self.dtype(), sizes);
}

bool has_none(const std::vector<Tensor>& list) {
  for (const Tensor& t : list)
    if (!t) return true;
  return false;
}

Arg indices_argument(const std::vector<Tensor>& list) {
  return has_none(list) ? Arg("indices", Indices{list}) : Arg("indices", list);
}

void index_backward(Backward& b) {
  static const Op index_put("aten.index_put.default");
  const Tensor blank = zeros_with_options(b);
  const std::vector<Tensor> indices = b.saved_list("indices");
  b.give("self", index_put(b.runner(),
                           {{"self", blank}, indices_argument(indices), {"values", b.grad()}, {"accumulate", true}}));
}

void index_put_backward(Backward& b) {
  static const Op zeros("aten.zeros.default");
  static const Op index_put("aten.index_put.default");
  static const Op index("aten.index.Tensor");
  Runner& r = b.runner();
  const std::vector<Tensor> indices = b.saved_list("indices");
  const Meta& values = b.input("values");
  if (b.needs("self")) {
    if (b.flag("accumulate")) {
      b.give("self", b.grad());
    } else {
      const Tensor blank = zeros(r, {{"size", values.sizes},
                                     {"dtype", dtype_word(values.dtype)},
                                     {"layout", "torch.strided"},
                                     {"device", "cpu"}});
      b.give("self", index_put(r, {{"self", b.grad()}, indices_argument(indices), {"values", blank}}));
    }
  }
  if (b.needs("values")) b.give("values", index(r, {{"self", b.grad()}, indices_argument(indices)}));
}

// -- by a mask --

void infer_masked_scatter_backward(Call& call) { call.fresh(call.in(0).dtype(), call.dims("sizes")); }

void masked_scatter_backward(Backward& b) {
  static const Op fill("aten.masked_fill.Scalar");
  static const Op taken("aten.masked_scatter_backward.default");
  Runner& r = b.runner();
  if (b.needs("self")) b.give("self", fill(r, {{"self", b.grad()}, {"mask", b.saved("mask")}, {"value", 0}}));
  if (b.needs("source"))
    b.give("source",
           taken(r, {{"grad_output", b.grad()}, {"mask", b.saved("mask")}, {"sizes", b.input("source").sizes}}));
}

}  // namespace

std::vector<Row> index_rows() {
  constexpr step::OpFlags kByData = step::OpFlag::kDataDependent | step::OpFlag::kMustSave;
  return {
      {.name = "aten.index.Tensor",
       .infer = infer_index,
       .node = "IndexBackward0",
       .saves = {{"indices"}},
       .backward = index_backward,
       .moves = gathers,
       .flags = kByData},
      {.name = "aten.index_put.default",
       .infer = infer_like_first,
       .node = "IndexPutBackward0",
       .saves = {{"indices"}},
       .backward = index_put_backward,
       .in_place = "aten.index_put_.default"},
      {.name = "aten.index_put_.default", .infer = infer_in_place, .moves = scatters},
      {.name = "aten.scatter.src",
       .infer = infer_like_first,
       .node = "ScatterBackward0",
       .saves = {{"index"}},
       .backward = scatter_backward,
       .in_place = "aten.scatter_.src"},
      {.name = "aten.scatter_.src", .infer = infer_in_place, .moves = scatters},
      {.name = "aten.scatter.value",
       .infer = infer_like_first,
       .node = "ScatterBackward1",
       .saves = {{"index"}},
       .backward = scatter_value_backward,
       .in_place = "aten.scatter_.value"},
      {.name = "aten.scatter_.value", .infer = infer_in_place, .moves = scatters},
      {.name = "aten.gather.default",
       .infer = infer_gather,
       .node = "GatherBackward0",
       .saves = {{"index"}, {"self"}},
       .backward = gather_backward,
       .moves = gathers},
      {.name = "aten.scatter_add.default",
       .infer = infer_like_first,
       .node = "ScatterAddBackward0",
       .saves = {{"index", "src"}},
       .backward = scatter_add_backward,
       .in_place = "aten.scatter_add_.default"},
      {.name = "aten.scatter_add_.default", .infer = infer_in_place, .moves = scatters},
      {.name = "aten.index_select.default",
       .infer = infer_index_select,
       .node = "IndexSelectBackward0",
       .saves = {{"index"}},
       .backward = index_select_backward,
       .moves = gathers},
      {.name = "aten.index_add.default",
       .infer = infer_like_first,
       .node = "IndexAddBackward0",
       .saves = {{"index", "source"}, {"source", "source"}},
       .backward = index_add_backward,
       .in_place = "aten.index_add_.default"},
      {.name = "aten.index_add_.default", .infer = infer_in_place, .moves = scatters},
      {.name = "aten.index_copy.default",
       .infer = infer_like_first,
       .node = "IndexCopyBackward0",
       .saves = {{"index"}, {"source", "source"}},
       .backward = index_copy_backward},
      {.name = "aten.index_fill.int_Scalar",
       .infer = infer_like_first,
       .node = "IndexFillBackward0",
       .saves = {{"index"}},
       .backward = index_fill_backward},
      {.name = "aten.masked_scatter.default",
       .infer = infer_like_first,
       .node = "MaskedScatterBackward0",
       .saves = {{"mask"}},
       .backward = masked_scatter_backward,
       .in_place = "aten.masked_scatter_.default"},
      {.name = "aten.masked_scatter_.default", .infer = infer_in_place},
      {.name = "aten.masked_scatter_backward.default", .infer = infer_masked_scatter_backward},
      {.name = "aten.embedding.default",
       .infer = infer_embedding,
       .node = "EmbeddingBackward0",
       .saves = {{"indices"}},
       .backward = embedding_backward,
       .moves = gathers},
      {.name = "aten.embedding_dense_backward.default", .infer = infer_embedding_backward},
  };
}

}  // namespace tidemark::ops
