#pragma once

#include <vector>

#include "tidemark/nn/net.h"

namespace tidemark::nn {

// The rotary embedding of a model: the cosines and sines of all positions, made once per step.
class RotaryEmbedding : public Module {
 public:
  RotaryEmbedding(Net& net, step::ModuleId parent, const std::string& family, std::int64_t head);
  // {cos, sin}, each [1, length, head].
  std::vector<Tensor> operator()(const Tensor& hidden, const Tensor& positions) const;

 private:
  Tensor inv_freq_;
  Tensor original_inv_freq_;
};

// Turns queries and keys by their positions; both are replaced.
void rotate(Runtime& rt, Tensor& query, Tensor& key, const Tensor& cos, const Tensor& sin);

}  // namespace tidemark::nn
