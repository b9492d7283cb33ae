// What an op asks of a device, as the words of a table's row, and back.

#include "tidemark/cost/work_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tidemark/base/error.h"
#include "tidemark/zoo/catalog.h"
#include "tidemark/zoo/record.h"

namespace tidemark::cost {
namespace {

using testing::HasSubstr;

std::string error_of(std::string_view text) {
  try {
    parse_work_text(text, "card.json: measured: ops[7]");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

// 2 * 512 * 512 * 64 FLOPs; 4 * (512 * 64 + 64 * 512 + 512 * 512) bytes.
TEST(WorkText, SaysWhatIsNotUsual) {
  Work work = product_work(Family::kMatmul, 1, 512, 512, 64);
  work.is_along_rows = true;
  EXPECT_EQ(work_text(work), "matmul float32 m512 n512 k64 flops33554432 bytes1310720 along_rows");
  EXPECT_EQ(parse_work_text("matmul float32 m512 n512 k64 flops33554432 bytes1310720 along_rows", "x"), work);
  EXPECT_EQ(work_text(Work{}), "unpriced float32");
}

TEST(WorkText, EveryFieldComesBack) {
  const Work work{.family = Family::kConvolution,
                  .precision = device::Precision::kBFloat16,
                  .is_backward = true,
                  .is_along_rows = true,
                  .b = 2,
                  .m = 300,
                  .n = 4,
                  .k = 5,
                  .winograd_tiles = 6,
                  .flops = 7,
                  .skipped_flops = 3,
                  .bytes = 8,
                  .row_bytes = 9,
                  .random = 10,
                  .item_bytes = 2};
  EXPECT_EQ(work_text(work),
            "convolution bfloat16 b2 m300 n4 k5 winograd6 flops7 skipped3 bytes8 row_bytes9 random10 item2 backward "
            "along_rows");
  EXPECT_EQ(parse_work_text(work_text(work), "x"), work);
}

TEST(WorkText, OpsOfModelsComeBack) {
  for (const char* model : {"gpt2", "llama-7b"}) {
    const step::Step step = zoo::record(zoo::find_model(model)->config, {.batch = 1, .sequence = 64});
    const auto facts = facts_of(step);
    for (const step::Op& op : step.tables().ops) {
      const Work work = work_of(step, op, facts);
      EXPECT_EQ(parse_work_text(work_text(work), "x"), work) << work_text(work);
    }
  }
}

TEST(WorkText, OtherTextIsRefused) {
  EXPECT_THAT(error_of("magic float32"), HasSubstr("[card.json: measured: ops[7]] the work of the op cannot be read; "
                                                   "expected one of free, matmul, batched,"));
  EXPECT_THAT(error_of("matmul float33"),
              HasSubstr(R"(one of float64, float32, tf32, float16, bfloat16, float8, int8, )"
                        R"(got "float33")"));
  for (const char* text : {"",
                           "matmul",
                           "matmul ",
                           "matmul float32 ",
                           "matmul  float32",
                           "matmul float32 m",
                           "matmul float32 m-1",
                           "matmul float32 m+1",
                           "matmul float32 m01",
                           "matmul float32 m1.5",
                           "matmul float32 m1 m1",
                           "matmul float32 n1 m1",
                           "matmul float32 m99999999999999999999",
                           "matmul float32 along_rows backward",
                           "matmul float32 backward backward",
                           "matmul float32 q1",
                           "matmul float32 item0",
                           "matmul float32 item17",
                           "matmul float32\tm1",
                           "\xff\xfe float32",
                           "matmul float32 m1 "})
    EXPECT_THAT(error_of(text), HasSubstr("[card.json: measured: ops[7]] the work of the op cannot be")) << text;
}

// The formulas multiply sizes, in integers.
TEST(WorkText, HugeNumbersAreRefused) {
  EXPECT_EQ(error_of("matmul float32 m1000000 n1000000 k10000"), "accepted");
  EXPECT_THAT(error_of("matmul float32 m1000000 n1000000 k100000"), HasSubstr("numbers up to 10^17"));
  EXPECT_THAT(error_of("stream float32 bytes100000000000000001"), HasSubstr("numbers up to 10^17"));
  EXPECT_EQ(error_of("convolution float32 m1000000 n1000 k1000 winograd1000"), "accepted");
  EXPECT_THAT(error_of("convolution float32 m10 n10 k9 winograd11"), HasSubstr("numbers up to 10^17"));
}

}  // namespace
}  // namespace tidemark::cost
