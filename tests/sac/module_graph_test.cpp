#include "tidemark/sac/module_graph.h"

#include <gtest/gtest.h>

#include "tidemark/base/error.h"

namespace tidemark::sac {
namespace {

ModuleInfo info_of(std::vector<std::string> pre, std::vector<std::string> post) {
  ModuleInfo info;
  for (const std::string& name : pre) {
    info.modules.emplace_back();
    info.modules.back().fqn = name;
  }
  info.order.forward_pre = std::move(pre);
  info.order.forward_post = std::move(post);
  return info;
}

TEST(ModuleGraph, AncestryIsThatOfTheTree) {
  // By names alone "M.a" would be found inside "M.x.M.a.b", and "M.a" above "M.ab".
  const ModuleGraph graph = build_module_graph(
      info_of({"M", "M.a", "M.a.b", "M.ab", "M.x", "M.x.M.a.b"}, {"M.a.b", "M.a", "M.ab", "M.x.M.a.b", "M.x", "M"}));
  EXPECT_TRUE(graph.is_submodule(2, 1));
  EXPECT_TRUE(graph.is_submodule(2, 0));
  EXPECT_FALSE(graph.is_submodule(1, 1));
  EXPECT_FALSE(graph.is_submodule(3, 1));
  EXPECT_FALSE(graph.is_submodule(5, 1));
  EXPECT_TRUE(graph.is_submodule(5, 4));
  EXPECT_EQ(graph.nodes[0].forward_post_position, 5U);
  EXPECT_EQ(graph.nodes[2].forward_post_position, 0U);
}

TEST(ModuleGraph, AModuleThatAnotherOneCallsStaysBelowItsOwner) {
  // b calls a.shared, after a has returned.
  const ModuleGraph graph =
      build_module_graph(info_of({"M", "M.a", "M.b", "M.a.shared"}, {"M.a", "M.a.shared", "M.b", "M"}));
  EXPECT_EQ(graph.nodes[2].stats.fqn, "M.a.shared");
  EXPECT_TRUE(graph.is_submodule(2, 1));
  EXPECT_FALSE(graph.is_submodule(3, 1));
}

// The root calls M.p.c, and then M.p, which calls it once more.
TEST(ModuleGraph, AModuleThatRunsBeforeItsOwnerStaysBelowIt) {
  const ModuleGraph graph = build_module_graph(info_of({"M", "M.p.c", "M.p"}, {"M.p.c", "M.p", "M"}));
  ASSERT_EQ(graph.nodes.size(), 3u);
  EXPECT_EQ(graph.nodes[1].stats.fqn, "M.p");
  EXPECT_EQ(graph.nodes[1].parent, 0u);
  EXPECT_EQ(graph.nodes[2].stats.fqn, "M.p.c");
  EXPECT_EQ(graph.nodes[2].parent, 1u);
  EXPECT_EQ(graph.nodes[1].last_descendant, 2u);
}

TEST(ModuleGraph, RefusesOrdersThatDoNotFit) {
  EXPECT_THROW(build_module_graph(info_of({"M.a", "M"}, {"M.a", "M"})), Error);  // no root to begin with
  EXPECT_THROW(build_module_graph(info_of({"M", "M.a"}, {"M"})), Error);
  EXPECT_THROW(build_module_graph(info_of({"M", "M.a"}, {"M", "M"})), Error);
  EXPECT_THROW(build_module_graph(info_of({"M", "N.a"}, {"N.a", "M"})), Error);
  EXPECT_THROW(build_module_graph(info_of({"M", "M"}, {"M", "M"})), Error);
}

TEST(ModuleGraph, TheBaselineIsTheLargestSum) {
  ModuleInfo info = info_of({"M", "M.a"}, {"M.a", "M"});
  info.modules[0].parameter_bytes = 100;
  info.modules[0].activations_after_bytes = 50;
  info.modules[0].forward_ms = 1;
  info.modules[0].backward_ms = 2;
  info.modules[1].gradients_before_bytes = 30;
  info.modules[1].activation_gradient_bytes = -5;
  info.modules[1].activations_after_bytes = 40;
  const Baseline baseline = reference_baseline(build_module_graph(info));
  EXPECT_EQ(baseline.peak_bytes, 100 + 30 - 5 + 40);
  EXPECT_DOUBLE_EQ(baseline.compute_ms, 3);
}

}  // namespace
}  // namespace tidemark::sac
