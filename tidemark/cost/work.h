#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/cost/op_facts.h"
#include "tidemark/device/device.h"
#include "tidemark/step/step.h"

namespace tidemark::cost {

// What an op asks of a device, without names and tensors: the input of op_time.
struct Work {
  Family family = Family::kUnpriced;
  device::Precision precision = device::Precision::kFloat32;
  bool is_backward = false;
  bool is_along_rows = false;  // matmul: both operands are contiguous along what is summed over
  // Products: b times (m x k) by (k x n). Softmax and norm: m rows of n columns.
  std::int64_t b = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t winograd_tiles = 0;  // convolutions of 3 x 3 at stride 1: 4 x 4 patches of the result
  std::int64_t flops = 0;
  std::int64_t skipped_flops = 0;  // of these: what causal attention does not compute
  std::int64_t bytes = 0;          // read and written, each element once
  std::int64_t row_bytes = 0;      // softmax and norm: of all rows, once
  std::int64_t random = 0;         // numbers drawn
  int item_bytes = 4;

  friend bool operator==(const Work&, const Work&) = default;
};

// Requires: `facts` is facts_of(step).
Work work_of(const step::Step& step, const step::Op& op, const std::vector<OpFact>& facts);

// Whether the formulas can multiply its numbers, which come from files.
bool is_workable(const Work& work);

// Works for shapes that are no op of a step: float32 unless said otherwise.
Work product_work(Family family, std::int64_t b, std::int64_t m, std::int64_t n, std::int64_t k,
                  device::Precision precision = device::Precision::kFloat32, int item_bytes = 4);
Work rows_work(Family family, std::int64_t rows, std::int64_t columns);
Work stream_work(std::int64_t bytes);

}  // namespace tidemark::cost
