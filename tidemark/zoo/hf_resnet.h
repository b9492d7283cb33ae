#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tidemark/zoo/model.h"

namespace tidemark::zoo {

// ResNetForImageClassification of transformers. Its arithmetic is that of the reference ResNets, its memory is not: it
// keeps what goes into its activations, where those overwrite it.
struct HfResNetConfig {
  std::int64_t channels = 3;
  std::int64_t embedding = 64;
  std::vector<std::int64_t> widths = {256, 512, 1024, 2048};
  std::vector<std::int64_t> depths = {3, 4, 6, 3};
  bool bottleneck = true;
  bool downsamples_first_stage = false;
  bool downsamples_first_convolution = false;  // of a bottleneck, where others do it in the second
  std::int64_t classes = 2;
};

std::unique_ptr<Model> make_hf_resnet(nn::Net& net, const HfResNetConfig& config, const Batch& batch);

}  // namespace tidemark::zoo
