#pragma once

#include <cstdint>
#include <memory>

#include "tidemark/zoo/activation.h"
#include "tidemark/zoo/model.h"

namespace tidemark::zoo {

// BERT with its masked-language-model head, as BertForMaskedLM of `transformers` runs it.
struct BertConfig {
  std::int64_t layers = 12;
  std::int64_t width = 768;
  std::int64_t inner = 3072;
  std::int64_t heads = 12;
  std::int64_t vocabulary = 30522;
  std::int64_t positions = 512;
  std::int64_t token_types = 2;
  std::int64_t padding = 0;  // -1: none
  double dropout = 0.1;
  double attention_dropout = 0.1;
  double layer_norm_eps = 1e-12;
  ActivationKind activation = ActivationKind::kGelu;
};

std::unique_ptr<Model> make_bert(nn::Net& net, const BertConfig& config, const Batch& batch);

}  // namespace tidemark::zoo
