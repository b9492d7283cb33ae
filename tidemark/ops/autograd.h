#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tidemark/ops/args.h"

namespace tidemark::ops {

struct Row;

// Where a gradient goes next: input `input_nr` of a node.
struct Edge {
  std::shared_ptr<GradNode> node;
  std::uint32_t input_nr = 0;
};

// What a node remembers of a tensor; of its strides, no more than formulas ask for.
struct Meta {
  DType dtype = DType::kFloat32;
  bool is_column_major = false;  // its last two dimensions are a matrix that lies in memory column by column
  Dims sizes;

  Meta() = default;
  explicit Meta(const Tensor& t) : dtype(t.dtype()), sizes(t.sizes()) {
    const Dims& strides = t.strides();
    is_column_major = t.rank() >= 2 && strides.back(1) == 1 && strides.back() == sizes.back(1);
  }
};

// An argument of the op, with tensors replaced by where they stand among its inputs.
struct NodeArg {
  const char* name;
  Value value;
  std::size_t begin = 0;
  std::size_t count = 0;
};

// What autograd keeps of a tensor: a description, or the tensor itself when it is fixed. The recorder holds the rest.
struct SavedTensor {
  step::SaveId save;
  Tensor fixed;
  std::int64_t bytes = 0;
  DType dtype = DType::kFloat32;
  Dims sizes;
  Dims strides;
  std::int64_t offset = 0;
  step::StorageId storage;
  std::uint32_t version = 0;
  const char* name = nullptr;  // of the argument, or of the result
};

// A node of the autograd graph: which op made it, what it keeps, and where its gradients go. A node without a row
// accumulates the gradient of a leaf.
struct GradNode {
  const Row* row = nullptr;
  const char* name = "";
  std::uint64_t sequence = 0;
  std::vector<Edge> next;     // one for each tensor the op was given
  std::vector<Meta> inputs;   // of the op
  std::vector<Meta> outputs;  // of the op: what its incoming gradients look like
  std::vector<NodeArg> args;
  std::vector<SavedTensor> saved;
  TensorData* leaf = nullptr;
  Tensor grad;      // of the leaf
  step::NodeId id;  // the recorder's

  // The engine's notes while it runs backward.
  std::int32_t dependencies = 0;  // gradients that are still to come
  bool is_counted = false;
  std::vector<Tensor> waiting;  // gradients that have come
};

}  // namespace tidemark::ops
