#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

// A family of ops: the file of its rows, and the parts of names by which an op without a row is told to belong to it.
struct Family {
  const char* file;
  std::vector<Row> (*rows)();
  std::initializer_list<std::string_view> parts;
};

// In the order in which names are tried: "softmax" before "max".
const Family kFamilies[] = {
    {"tidemark/ops/foreach.cpp", foreach_rows, {"_foreach", "_fused_a", "_fused_sgd"}},
    {"tidemark/ops/attention.cpp", attention_rows, {"attention"}},
    {"tidemark/ops/conv.cpp", conv_rows, {"conv"}},
    {"tidemark/ops/dropout.cpp", dropout_rows, {"dropout"}},
    {"tidemark/ops/softmax.cpp", softmax_rows, {"softmax"}},
    {"tidemark/ops/binary_loss.cpp", binary_loss_rows, {"binary_cross_entropy"}},
    {"tidemark/ops/loss.cpp", loss_rows, {"loss", "kl_div", "cross_entropy"}},
    {"tidemark/ops/pool.cpp", pool_rows, {"pool"}},
    {"tidemark/ops/resize.cpp", resize_rows, {"upsample", "interpolate", "grid_sampler", "resize"}},
    {"tidemark/ops/pad.cpp", pad_rows, {"_pad"}},
    {"tidemark/ops/index.cpp",
     index_rows,
     {"index", "gather", "scatter", "embedding", "take", "put", "nonzero", "masked_select", "searchsorted", "bucketize",
      "one_hot"}},
    {"tidemark/ops/matmul.cpp",
     matmul_rows,
     {".mm", "_mm", "addmm", "bmm", ".mv", "addmv", "matmul", "linalg", "dot", "linear", "einsum", "addr"}},
    {"tidemark/ops/create.cpp",
     create_rows,
     {"zeros", "ones", "rand", "empty", "full", "arange", "linspace", "eye", "normal", "bernoulli", "multinomial",
      "new_", "_like", "lift"}},
    {"tidemark/ops/norm.cpp", norm_rows, {"norm"}},
    {"tidemark/ops/views.cpp",
     view_rows,
     {"view", "expand", "transpose", "permute", "squeeze", "split", "slice", "select", "strided", "unfold", "diagonal",
      "unbind", "alias", "narrow"}},
    {"tidemark/ops/shape.cpp",
     shape_rows,
     {"cat", "stack", "repeat", "flip", "roll", "tril", "triu", "shuffle", "im2col", "col2im", "diag"}},
    {"tidemark/ops/compare.cpp",
     compare_rows,
     {"logical", "bitwise", "isnan", "isinf", "isfinite", "where", "masked", ".eq", ".ne.", ".lt", ".le.", ".gt",
      ".ge.", "nan_to_num"}},
    {"tidemark/ops/bounds.cpp", bound_rows, {"clamp", "maximum", "minimum", "fmax", "fmin"}},
    {"tidemark/ops/extremes.cpp", extreme_rows, {"max", "min", "sort", "topk", "median", "mode", "kthvalue", "unique"}},
    {"tidemark/ops/moments.cpp", moment_rows, {"var", "std"}},
    {"tidemark/ops/reduce.cpp", reduce_rows, {"sum", "mean", "prod", "count", "histc", ".all.", ".any."}},
    {"tidemark/ops/activation.cpp",
     activation_rows,
     {"relu", "elu", "glu", "sigmoid", "tanh", "softplus", "shrink", "swish", "mish", "threshold", "silu"}},
    {"tidemark/ops/elementary.cpp",
     elementary_rows,
     {"exp", "log", "sqrt", "sin", "cos", "tan", "erf", "floor", "ceil", "round", "trunc", "abs", "neg", "sign",
      "gamma", "bessel"}},
    {"tidemark/ops/update.cpp", update_rows, {"copy_", "fill_", "zero_", "uniform_"}},
    {"tidemark/ops/pointwise.cpp", pointwise_rows, {}},
};

struct Registry {
  std::vector<Row> rows;
  std::unordered_map<std::string_view, const Row*> by_name;
};

const Registry& registry() {
  static const Registry kRegistry = [] {
    Registry r;
    for (const Family& family : kFamilies)
      for (Row& row : family.rows()) {
        row.file = family.file;
        r.rows.push_back(std::move(row));
      }
    for (const Row& row : r.rows) {
      const bool is_new = r.by_name.emplace(row.name, &row).second;
      TIDEMARK_CHECK(is_new, fmt::format("{} has one row", row.name));
    }
    return r;
  }();
  return kRegistry;
}

// "max" of "aten.max.dim", "relu" of "aten.relu_.default": an op, whichever of its forms.
std::string_view stem(std::string_view name) {
  name.remove_prefix(std::min(name.find('.') + 1, name.size()));
  name = name.substr(0, name.find('.'));
  if (name.ends_with("_backward")) name.remove_suffix(std::string_view("_backward").size());
  while (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

// Where the row of an op would stand: by its other forms, then by its name. What no family claims is pointwise.
const char* file_of(std::string_view name) {
  for (const Row& row : registry().rows)
    if (stem(row.name) == stem(name)) return row.file;
  for (const Family& family : kFamilies)
    for (const std::string_view part : family.parts)
      if (name.find(part) != std::string_view::npos) return family.file;
  return "tidemark/ops/pointwise.cpp";
}

}  // namespace

const Row& row(std::string_view name) {
  const auto found = registry().by_name.find(name);
  if (found != registry().by_name.end()) return *found->second;
  throw Error({.kind = ErrorKind::kInput,
               .place = std::string(name),
               .problem = "there is no row for this op",
               .expected = {},
               .got = {},
               .remedy = fmt::format("add one to {}", file_of(name))});
}

std::span<const Row> rows() { return registry().rows; }

}  // namespace tidemark::ops
