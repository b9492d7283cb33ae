#pragma once

#include <cstdint>
#include <memory>

#include "tidemark/zoo/activation.h"
#include "tidemark/zoo/model.h"

namespace tidemark::zoo {

// T5ForConditionalGeneration: an encoder and a decoder with relative position biases and one embedding for both and
// for the head. The sequence is the length of the source and of the target.
struct T5Config {
  std::int64_t layers = 6;
  std::int64_t decoder_layers = 0;  // 0: as many as the encoder has
  std::int64_t width = 512;
  std::int64_t inner = 2048;
  std::int64_t heads = 8;
  std::int64_t head = 64;
  std::int64_t vocabulary = 32128;
  std::int64_t positions = 512;  // of the texts it was trained on; longer ones are possible
  std::int64_t buckets = 32;
  std::int64_t max_distance = 128;
  std::int64_t padding = 0;  // the token in place of labels that do not count
  double dropout = 0.1;
  double layer_norm_eps = 1e-6;
  ActivationKind activation = ActivationKind::kRelu;
  // Version 1.1: the MLP is gated, with GELU by GPT-2's formula; the head's input is not scaled.
  bool gated = false;
  bool scales_output = true;

  std::int64_t decoders() const { return decoder_layers != 0 ? decoder_layers : layers; }
};

std::unique_ptr<Model> make_t5(nn::Net& net, const T5Config& config, const Batch& batch);

}  // namespace tidemark::zoo
