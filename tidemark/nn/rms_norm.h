#pragma once

#include <string>

#include "tidemark/nn/net.h"

namespace tidemark::nn {

// The RMS norm of Llama, in single precision inside. Gemma's weight is what is added to one.
class RmsNorm : public Module {
 public:
  RmsNorm(Net& net, step::ModuleId parent, std::string name, const std::string& family, std::int64_t width, double eps);
  Tensor operator()(const Tensor& x) const;

 private:
  Tensor gemma(const Tensor& x) const;

  double eps_;
  bool is_gemma_;
  Tensor weight_;
};

}  // namespace tidemark::nn
