#pragma once

#include <cstdint>
#include <memory>

#include "tidemark/zoo/model.h"

namespace tidemark::zoo {

// A U-Net with group norms ("U-Net: Convolutional Networks for Biomedical Image Segmentation", with the norms and
// activations that diffusion models use), from images to images. Its loss is the mean squared error.
struct UNetConfig {
  std::int64_t channels = 3;
  std::int64_t width = 64;
  std::int64_t depth = 4;  // how often the image is halved
  std::int64_t groups = 8;
};

std::unique_ptr<Model> make_unet(nn::Net& net, const UNetConfig& config, const Batch& batch);

}  // namespace tidemark::zoo
