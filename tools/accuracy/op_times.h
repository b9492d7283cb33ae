#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tidemark/cost/work.h"
#include "tidemark/device/device.h"

namespace tidemark::accuracy {

// The measurements of data/op_times, as works with the seconds they took.

struct OpRow {
  std::string op;    // "linear", "add_scalar"
  std::string part;  // "models": shapes that occur in models; "grid": random shapes
  cost::Work work;
  double seconds = 0;
};

struct NodeCount {
  std::string phase;  // "fwd", "bwd", "acc"
  cost::Work work;
  std::int64_t count = 0;
};

struct StepRow {
  std::string gpu;
  std::string name;  // "bert_large, train, 512 x 8"
  double seconds = 0;
  std::vector<NodeCount> ops;
};

struct OpTimes {
  std::map<std::string, std::vector<OpRow>> by_gpu;
  std::vector<OpRow> tensor_core;  // bfloat16 products on an H100
  std::vector<StepRow> steps;
};

// Throws: Error when a file is missing or malformed.
OpTimes read_op_times(const std::string& folder);

// The device that the measurements call so ("A100-40").
device::Device device_of(const std::string& gpu);
inline const std::vector<std::string> kGpus = {"P4", "P100", "V100", "T4", "A100-40"};

}  // namespace tidemark::accuracy
