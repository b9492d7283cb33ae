#pragma once

#include "tidemark/cost/machine.h"
#include "tidemark/cost/work.h"

namespace tidemark::cost {

// Seconds of a matrix product, by part.
struct ProductTime {
  double compute_s = 0;
  double memory_s = 0;
  double both_s = 0;  // partly overlapped, without the launch
};

// `flops_per_s` stands for the machine's rate at the work's precision.
ProductTime product_time(const Work& work, const Machine& machine, double flops_per_s);
inline ProductTime product_time(const Work& work, const Machine& machine) {
  return product_time(work, machine, machine.rate(work.precision).flops_per_s);
}

}  // namespace tidemark::cost
