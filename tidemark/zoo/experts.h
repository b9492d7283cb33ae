#pragma once

#include <string>

#include "tidemark/nn/layers.h"

namespace tidemark::zoo {

struct ExpertShape {
  std::string family;
  std::int64_t width = 0;
  std::int64_t inner = 0;
  std::int64_t experts = 0;
  std::int64_t chosen = 0;  // for each token
};

// A gated MLP for each expert; a router sends each token to its best few. Tokens are sorted by expert, so that one
// grouped product does all of them, as `transformers` does it.
class Router : public nn::Module {
 public:
  Router(nn::Net& net, step::ModuleId parent, const ExpertShape& shape);
  // {logits, scores, experts}
  std::vector<nn::Tensor> operator()(const nn::Tensor& tokens) const;

 private:
  std::int64_t chosen_;
  nn::Tensor weight_;
};

class Experts : public nn::Module {
 public:
  Experts(nn::Net& net, step::ModuleId parent, const ExpertShape& shape);
  nn::Tensor operator()(const nn::Tensor& tokens, const nn::Tensor& experts, const nn::Tensor& scores) const;

 private:
  nn::Tensor forward(const nn::Tensor& tokens, const nn::Tensor& experts, const nn::Tensor& scores) const;

  ExpertShape shape_;
  nn::Tensor gate_up_proj_;
  nn::Tensor down_proj_;
  nn::Activation act_fn_;
};

class MixtureOfExperts : public nn::Module {
 public:
  MixtureOfExperts(nn::Net& net, step::ModuleId parent, const ExpertShape& shape);
  nn::Tensor operator()(const nn::Tensor& x) const;

 private:
  Router gate_;
  Experts experts_;
};

}  // namespace tidemark::zoo
