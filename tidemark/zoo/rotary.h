#pragma once

#include <vector>

#include "tidemark/zoo/hf_parts.h"

namespace tidemark::zoo {

// The rotary embedding of a model: the cosines and sines of all positions, made once per step.
class RotaryEmbedding : public nn::Module {
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

// The RMS norm of Llama, in single precision inside. Gemma's weight is what is added to one.
class RmsNorm : public nn::Module {
 public:
  RmsNorm(Net& net, step::ModuleId parent, std::string name, const std::string& family, std::int64_t width, double eps);
  Tensor operator()(const Tensor& x) const;

 private:
  Tensor gemma(const Tensor& x) const;

  double eps_;
  bool is_gemma_;
  Tensor weight_;
};

}  // namespace tidemark::zoo
