// One row per op, and what is derived from the rows.

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "tidemark/base/error.h"
#include "tidemark/ops/row.h"

namespace tidemark::ops {
namespace {

TEST(Registry, HasAtLeast120Ops) { EXPECT_GE(rows().size(), 120u); }

// What a model may put between a parameter and its loss; names by family as in the registry.
TEST(Registry, HasABackwardForTheUsualOps) {
  for (const char* name : {"aten.abs.default",
                           "aten.clamp.default",
                           "aten.maximum.default",
                           "aten.minimum.default",
                           "aten.reciprocal.default",
                           "aten.leaky_relu.default",
                           "aten.elu.default",
                           "aten.softplus.default",
                           "aten.hardtanh.default",
                           "aten.max.default",
                           "aten.max.dim",
                           "aten.amax.default",
                           "aten.min.default",
                           "aten.min.dim",
                           "aten.amin.default",
                           "aten.var.correction",
                           "aten.prod.default",
                           "aten.cumsum.default",
                           "aten.sort.default",
                           "aten.linalg_vector_norm.default",
                           "aten.index_select.default",
                           "aten.index_put.default",
                           "aten.scatter.src",
                           "aten.scatter_add.default",
                           "aten.stack.default",
                           "aten.repeat.default",
                           "aten.unbind.int",
                           "aten.tril.default",
                           "aten.triu.default",
                           "aten.baddbmm.default",
                           "aten._adaptive_avg_pool2d.default",
                           "aten.binary_cross_entropy.default",
                           "aten.binary_cross_entropy_with_logits.default",
                           "aten.smooth_l1_loss.default",
                           "aten.huber_loss.default"})
    EXPECT_NE(row(name).backward, nullptr) << name;
}

TEST(Registry, NamesOpsAsTheDispatcherDoes) {
  std::set<std::string_view> names;
  for (const Row& row : rows()) {
    const std::string_view name = row.name;
    EXPECT_TRUE(name.starts_with("aten.")) << name;
    EXPECT_NE(name.find('.', 5), name.npos) << name << " has no overload";
    EXPECT_TRUE(names.insert(name).second) << name << " stands twice";
    EXPECT_TRUE(std::string_view(row.file).starts_with("tidemark/ops/")) << name;
    EXPECT_NE(row.infer, nullptr) << name;
  }
}

TEST(Registry, HasABackwardForEveryOpWithANode) {
  for (const Row& row : rows()) EXPECT_EQ(row.node != nullptr, row.backward != nullptr) << row.name;
}

TEST(Registry, KnowsTheNameOfEveryResultThatIsKept) {
  for (const Row& row : rows())
    for (const Saved& saved : row.saved_results) {
      bool is_named = false;
      for (const char* name : row.results) is_named = is_named || std::string_view(name) == saved.name;
      EXPECT_TRUE(is_named) << row.name << ": " << saved.name;
    }
}

// PyTorch's generated code keeps arguments in the order of their names, then results in the order of theirs.
TEST(Registry, KeepsInTheOrderOfNames) {
  for (const Row& row : rows())
    for (const auto* list : {&row.saves, &row.saved_results})
      for (std::size_t i = 1; i < list->size(); ++i)
        EXPECT_LT(std::string_view((*list)[i - 1].name), std::string_view((*list)[i].name)) << row.name;
}

TEST(Registry, HasTheInPlaceFormOfWhatPyTorchWritesInPlace) {
  for (const Row& row : rows())
    if (row.in_place != nullptr) {
      EXPECT_NO_THROW(ops::row(row.in_place)) << row.name;
    }
}

// The file of a family: by another form of the same op, by a part of the name, and else that of arithmetic.
TEST(Registry, NamesAMissingOpAndTheFileToEdit) {
  const std::pair<const char*, const char*> cases[] = {
      {"aten.max.names_dim", "tidemark/ops/extremes.cpp"},
      {"aten.relu6.default", "tidemark/ops/activation.cpp"},
      {"aten.adaptive_max_pool3d.default", "tidemark/ops/pool.cpp"},
      {"aten._cdist_forward.default", "tidemark/ops/pointwise.cpp"},
      {"aten.multi_margin_loss.default", "tidemark/ops/loss.cpp"},
      {"aten.native_channel_shuffle.default", "tidemark/ops/shape.cpp"},
      {"aten.linalg_matrix_exp.default", "tidemark/ops/matmul.cpp"},
      {"aten.conv_tbc.default", "tidemark/ops/conv.cpp"},
      {"aten.softmax.int", "tidemark/ops/softmax.cpp"},
      {"aten.lgamma.default", "tidemark/ops/elementary.cpp"},
      {"aten.index_reduce.default", "tidemark/ops/index.cpp"},
      {"aten._foreach_erf.default", "tidemark/ops/foreach.cpp"},
      {"aten.add_.Scalar", "tidemark/ops/update.cpp"},
  };
  for (const auto& [name, file] : cases) {
    try {
      row(name);
      ADD_FAILURE() << "there is a row for " << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.info().place, name);
      EXPECT_EQ(error.info().remedy, std::string("add one to ") + file) << name;
      EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(TIDEMARK_SOURCE_DIR) / file)) << file;
    }
  }
}

}  // namespace
}  // namespace tidemark::ops
