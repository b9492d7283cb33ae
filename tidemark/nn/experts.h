#pragma once

#include <string>

#include "tidemark/nn/layers.h"

namespace tidemark::nn {

struct ExpertShape {
  std::string family;
  std::int64_t width = 0;
  std::int64_t inner = 0;
  std::int64_t experts = 0;
  std::int64_t chosen = 0;  // for each token
  std::string activation_type = "SiLUActivation";
  Activation::Function activation = silu;
};

// A gated MLP for each expert; a router sends each token to its best few. Tokens are sorted by expert, so that one
// grouped product does all of them, as `transformers` does it.
class Router : public Module {
 public:
  Router(Net& net, step::ModuleId parent, const ExpertShape& shape);
  // {logits, scores, experts}
  std::vector<Tensor> operator()(const Tensor& tokens) const;

 private:
  std::int64_t chosen_;
  Tensor weight_;
};

class Experts : public Module {
 public:
  Experts(Net& net, step::ModuleId parent, const ExpertShape& shape);
  Tensor operator()(const Tensor& tokens, const Tensor& experts, const Tensor& scores) const;

 private:
  Tensor forward(const Tensor& tokens, const Tensor& experts, const Tensor& scores) const;

  ExpertShape shape_;
  Tensor gate_up_proj_;
  Tensor down_proj_;
  Activation act_fn_;
};

class MixtureOfExperts : public Module {
 public:
  MixtureOfExperts(Net& net, step::ModuleId parent, const ExpertShape& shape);
  Tensor operator()(const Tensor& x) const;

 private:
  Router gate_;
  Experts experts_;
};

}  // namespace tidemark::nn
