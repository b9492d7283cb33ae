#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tidemark/zoo/activation.h"
#include "tidemark/zoo/model.h"

namespace tidemark::zoo {

// Llama and its relatives with the same block: rotary positions, RMS norms, grouped queries, a gated MLP. The name
// decides what the classes are called ("Llama", "Mistral", "Qwen2", "Mixtral", "Gemma"), and in which order they pass
// on their arguments. Gemma scales its embedding. With experts, the MLP is a mixture of them: each token goes to its
// `chosen` best.
struct LlamaConfig {
  std::string family = "Llama";
  std::int64_t layers = 32;
  std::int64_t width = 4096;
  std::int64_t inner = 11008;
  std::int64_t heads = 32;
  std::int64_t kv_heads = 32;
  std::int64_t head = 0;  // 0: width / heads
  std::int64_t vocabulary = 32000;
  std::int64_t positions = 2048;
  std::int64_t window = 0;  // how many tokens attention looks back; 0: all
  bool tied = false;
  std::int64_t padding = -1;  // the token whose embedding is not trained; -1: none
  bool qkv_bias = false;
  bool output_bias = false;
  bool mlp_bias = false;
  double rms_eps = 1e-6;
  double attention_dropout = 0;
  ActivationKind activation = ActivationKind::kSilu;
  std::int64_t experts = 0;
  std::int64_t chosen = 2;

  bool is_gemma() const { return family == "Gemma"; }
  std::int64_t head_width() const { return head != 0 ? head : width / heads; }
};

std::unique_ptr<Model> make_llama(nn::Net& net, const LlamaConfig& config, const Batch& batch);

}  // namespace tidemark::zoo
