// Bytes that ops read and write, worked out by hand. Element size of float32 is 4, of int64 8.

#include "tidemark/ops/traffic.h"

#include <gtest/gtest.h>

#include "tidemark/fake/runtime.h"

namespace tidemark::ops {
namespace {

Moved moved_by(fake::Runtime& rt, const char* name, std::initializer_list<Arg> args) {
  Call call(rt, row(name), std::span(args.begin(), args.size()));
  call.row().infer(call);
  return moved(call);
}

class Traffic : public ::testing::Test {
 protected:
  fake::Runtime rt{fake::Target::kCpu};
  Tensor a = rt.leaf(DType::kFloat32, {4, 6}, false);  // 96 bytes
  Tensor b = rt.leaf(DType::kFloat32, {6}, false);     // 24 bytes
  Tensor index = rt.leaf(DType::kInt64, {2}, false);   // 16 bytes
};

TEST_F(Traffic, AllInputsAreReadAndAllResultsWritten) {
  const Moved m = moved_by(rt, "aten.add.Tensor", {{"self", a}, {"other", b}});
  EXPECT_EQ(m.read, 96 + 24);
  EXPECT_EQ(m.written, 96);
}

TEST_F(Traffic, AnExpandedTensorCountsByWhatItHolds) {
  const Tensor wide = rt.leaf(DType::kFloat32, {4, 6}, {0, 1}, false);
  EXPECT_EQ(moved_by(rt, "aten.neg.default", {{"self", wide}}).read, 24);
}

TEST_F(Traffic, AViewMovesNothing) {
  const Moved m = moved_by(rt, "aten.t.default", {{"self", a}});
  EXPECT_EQ(m.read + m.written, 0);
}

TEST_F(Traffic, NewMemoryIsNotTouchedAndZerosAreOnlyWritten) {
  const Moved empty = moved_by(rt, "aten.empty_like.default", {{"self", a}});
  EXPECT_EQ(empty.read + empty.written, 0);
  const Moved zeros = moved_by(rt, "aten.zeros_like.default", {{"self", a}});
  EXPECT_EQ(zeros.read, 0);
  EXPECT_EQ(zeros.written, 96);
}

TEST_F(Traffic, ACopyDoesNotReadWhatItOverwrites) {
  const Moved m = moved_by(rt, "aten.copy_.default", {{"self", a}, {"src", b}});
  EXPECT_EQ(m.read, 24);
  EXPECT_EQ(m.written, 96);
}

// Two rows of six: 48 bytes and the index.
TEST_F(Traffic, ChoosingReadsWhatIsChosen) {
  const Moved m = moved_by(rt, "aten.index_select.default", {{"self", a}, {"dim", 0}, {"index", index}});
  EXPECT_EQ(m.read, 16 + 48);
  EXPECT_EQ(m.written, 48);
}

TEST_F(Traffic, AddingToPositionsWritesWhatIsAdded) {
  const Tensor source = rt.leaf(DType::kFloat32, {2, 6}, false);
  const Moved m =
      moved_by(rt, "aten.index_add_.default", {{"self", a}, {"dim", 0}, {"index", index}, {"source", source}});
  EXPECT_EQ(m.read, 16 + 48);
  EXPECT_EQ(m.written, 48);
}

}  // namespace
}  // namespace tidemark::ops
