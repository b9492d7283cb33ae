#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tidemark/zoo/bert.h"
#include "tidemark/zoo/gpt2.h"
#include "tidemark/zoo/hf_resnet.h"
#include "tidemark/zoo/llama.h"
#include "tidemark/zoo/resnet.h"
#include "tidemark/zoo/t5.h"
#include "tidemark/zoo/toy_gpt.h"
#include "tidemark/zoo/unet.h"
#include "tidemark/zoo/vit.h"

namespace tidemark::zoo {

// A model of any family.
using Config = std::variant<Gpt2Config, LlamaConfig, BertConfig, T5Config, ViTConfig, ResNetConfig, HfResNetConfig,
                            ToyGptConfig, UNetConfig>;

// A built-in name: lower case, with the public size.
struct Entry {
  std::string_view name;
  Config config;
  std::string_view source;  // where its config is published
};

// All built-in models, by family and size.
std::span<const Entry> models();
// The entry with this name, or null.
const Entry* find_model(std::string_view name);
// The built-in name that was most likely meant, or nothing.
std::string nearest_model(std::string_view name);

// What a list of models says about one.
struct ModelFacts {
  std::int64_t parameters = 0;       // as published: without what a training head adds
  std::int64_t step_parameters = 0;  // that the recorded step has
  std::int64_t layers = 0;
  std::string_view head;  // what it is trained for
};
ModelFacts facts_of(const Config& config);

// The positions of a model's sequences, or 0 for models of images.
std::int64_t positions_of(const Config& config);
bool takes_images(const Config& config);
std::int64_t layers_of(const Config& config);
// The same model with as many layers, in the encoder and the decoder alike; none for families that are made of stages.
std::optional<Config> with_layers(const Config& config, std::int64_t layers);
// The longest sequence that the model takes, or 0: any.
std::int64_t longest_sequence_of(const Config& config);

// Throws: Error, one sentence, when no model can be built from it: sizes below one, heads that do not divide, products
// that overflow.
void check(const Config& config);

// Builds the model in a net. Requires: check(config) passed.
std::unique_ptr<Model> build(nn::Net& net, const Config& config, const Batch& batch);

}  // namespace tidemark::zoo
