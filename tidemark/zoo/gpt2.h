#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "tidemark/zoo/activation.h"
#include "tidemark/zoo/model.h"

namespace tidemark::zoo {

// GPT-2 with its language-model head, as GPT2LMHeadModel of `transformers` runs it.
struct Gpt2Config {
  std::int64_t layers = 12;
  std::int64_t width = 768;
  std::int64_t heads = 12;
  std::int64_t vocabulary = 50257;
  std::int64_t positions = 1024;
  std::int64_t inner = 0;                    // 0: four times the width
  std::optional<std::int64_t> padding = {};  // the token that texts are filled up with, as the config says it
  double embedding_dropout = 0.1;
  double attention_dropout = 0.1;
  double residual_dropout = 0.1;
  double layer_norm_eps = 1e-5;
  ActivationKind activation = ActivationKind::kNewGelu;
};

std::unique_ptr<Model> make_gpt2(nn::Net& net, const Gpt2Config& config, const Batch& batch);

}  // namespace tidemark::zoo
