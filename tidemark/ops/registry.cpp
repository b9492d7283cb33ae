#include <fmt/format.h>

#include <unordered_map>

#include "tidemark/ops/rules.h"

namespace tidemark::ops {

namespace {

struct Family {
  const char* file;
  std::vector<Row> (*rows)();
};

constexpr Family kFamilies[] = {
    {"tidemark/ops/pointwise.cpp", pointwise_rows}, {"tidemark/ops/update.cpp", update_rows},
    {"tidemark/ops/create.cpp", create_rows},       {"tidemark/ops/views.cpp", view_rows},
    {"tidemark/ops/shape.cpp", shape_rows},         {"tidemark/ops/matmul.cpp", matmul_rows},
    {"tidemark/ops/reduce.cpp", reduce_rows},       {"tidemark/ops/norm.cpp", norm_rows},
    {"tidemark/ops/softmax.cpp", softmax_rows},     {"tidemark/ops/loss.cpp", loss_rows},
    {"tidemark/ops/index.cpp", index_rows},         {"tidemark/ops/attention.cpp", attention_rows},
    {"tidemark/ops/conv.cpp", conv_rows},           {"tidemark/ops/pool.cpp", pool_rows},
    {"tidemark/ops/foreach.cpp", foreach_rows},     {"tidemark/ops/dropout.cpp", dropout_rows},
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

}  // namespace

const Row& row(std::string_view name) {
  const auto found = registry().by_name.find(name);
  if (found != registry().by_name.end()) return *found->second;
  throw Error({.kind = ErrorKind::kInput,
               .place = std::string(name),
               .problem = "there is no row for this op",
               .expected = {},
               .got = {},
               .remedy = "add one to the file of its family in tidemark/ops/, such as tidemark/ops/pointwise.cpp"});
}

std::span<const Row> rows() { return registry().rows; }

}  // namespace tidemark::ops
