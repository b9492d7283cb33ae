// One row per op, and what is derived from the rows.

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "tidemark/base/error.h"
#include "tidemark/ops/row.h"

namespace tidemark::ops {
namespace {

TEST(Registry, HasAtLeast120Ops) { EXPECT_GE(rows().size(), 120u); }

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

TEST(Registry, NamesAMissingOpAndWhereToAddIt) {
  try {
    row("aten.frobnicate.default");
    FAIL() << "there is such an op";
  } catch (const Error& error) {
    EXPECT_EQ(error.info().place, "aten.frobnicate.default");
    EXPECT_NE(error.info().remedy.find("tidemark/ops/"), std::string::npos);
  }
}

}  // namespace
}  // namespace tidemark::ops
