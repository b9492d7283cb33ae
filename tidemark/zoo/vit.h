#pragma once

#include <cstdint>
#include <memory>

#include "tidemark/zoo/activation.h"
#include "tidemark/zoo/model.h"

namespace tidemark::zoo {

// ViT with a classifier, as ViTForImageClassification of `transformers` runs it.
struct ViTConfig {
  std::int64_t layers = 12;
  std::int64_t width = 768;
  std::int64_t inner = 3072;
  std::int64_t heads = 12;
  std::int64_t image = 224;
  std::int64_t patch = 16;
  std::int64_t channels = 3;
  std::int64_t classes = 1000;
  bool qkv_bias = true;
  double dropout = 0;
  double attention_dropout = 0;
  double layer_norm_eps = 1e-12;
  ActivationKind activation = ActivationKind::kGelu;
};

std::unique_ptr<Model> make_vit(nn::Net& net, const ViTConfig& config, const Batch& batch);

}  // namespace tidemark::zoo
