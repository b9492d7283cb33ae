#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tidemark/nn/training.h"

namespace tidemark::zoo {

// What one step is given: sequences of tokens, or images.
struct Batch {
  std::int64_t size = 1;
  std::int64_t length = 1024;     // tokens
  std::int64_t image = 224;       // pixels
  bool input_needs_grad = false;  // of images
};

// A model that is built: what its step is given, and how it computes the loss.
class Model {
 public:
  virtual ~Model() = default;
  virtual std::vector<nn::Tensor> inputs() const = 0;
  virtual nn::Tensor loss() const = 0;  // runs forward and loss
};

}  // namespace tidemark::zoo
