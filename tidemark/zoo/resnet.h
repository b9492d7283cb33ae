#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "tidemark/zoo/model.h"

namespace tidemark::zoo {

// ResNet of "Deep Residual Learning for Image Recognition", with the layout and names of the usual reference models.
// Its loss is the cross entropy of classes.
struct ResNetConfig {
  std::array<std::int64_t, 4> blocks = {2, 2, 2, 2};
  bool bottleneck = false;
  std::int64_t width = 64;
  std::int64_t classes = 1000;
};

std::unique_ptr<Model> make_resnet(nn::Net& net, const ResNetConfig& config, const Batch& batch);

}  // namespace tidemark::zoo
