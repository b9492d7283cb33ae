// Choosing elements by their positions.

#include "tidemark/ops/aten.h"
#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

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

void infer_gather(Call& call) { call.fresh(call.in(0).dtype(), call.tensor("index").sizes()); }

void gather_backward(Backward& b) {
  static const Op zeros("aten.new_zeros.default");
  static const Op scatter_add("aten.scatter_add.default");
  Runner& r = b.runner();
  const Tensor blank = zeros(r, {{"self", b.grad()}, {"size", b.input("self").sizes}});
  b.give("self",
         scatter_add(r, {{"self", blank}, {"dim", b.integer("dim")}, {"index", b.saved("index")}, {"src", b.grad()}}));
}

// Indexing by one list of positions: the first dimension is replaced by the list's.
void infer_index(Call& call) {
  const Tensor& self = call.in(0);
  Dims sizes = call.in(1).sizes();
  for (std::size_t i = 1; i < self.rank(); ++i) sizes.push_back(self.sizes()[i]);
  call.fresh(self.dtype(), sizes);
}

void index_backward(Backward& b) {
  static const Op zeros("aten.new_zeros.default");
  static const Op index_put("aten.index_put.default");
  Runner& r = b.runner();
  const Tensor blank = zeros(r, {{"self", b.grad()},
                                 {"size", b.input("self").sizes},
                                 {"dtype", dtype_word(b.input("self").dtype)},
                                 {"layout", "torch.strided"},
                                 {"device", "cpu"}});
  const std::vector<Tensor> indices = {b.saved("indices")};
  b.give("self", index_put(r, {{"self", blank}, {"indices", indices}, {"values", b.grad()}, {"accumulate", true}}));
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
       .flags = kByData},
      {.name = "aten.index_put.default", .infer = infer_like_first, .in_place = "aten.index_put_.default"},
      {.name = "aten.index_put_.default", .infer = infer_in_place},
      {.name = "aten.scatter.src", .infer = infer_like_first, .in_place = "aten.scatter_.src"},
      {.name = "aten.scatter_.src", .infer = infer_in_place},
      {.name = "aten.gather.default",
       .infer = infer_gather,
       .node = "GatherBackward0",
       .saves = {{"index"}},
       .backward = gather_backward},
      {.name = "aten.scatter_add.default", .infer = infer_like_first, .in_place = "aten.scatter_add_.default"},
      {.name = "aten.scatter_add_.default", .infer = infer_in_place},
      {.name = "aten.embedding.default",
       .infer = infer_embedding,
       .node = "EmbeddingBackward0",
       .saves = {{"indices"}},
       .backward = embedding_backward},
      {.name = "aten.embedding_dense_backward.default", .infer = infer_embedding_backward},
  };
}

}  // namespace tidemark::ops
