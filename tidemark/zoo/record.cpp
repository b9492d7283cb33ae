#include "tidemark/zoo/record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace tidemark::zoo {

namespace {

constexpr std::int64_t kLongestDefault = 8192;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 32;

void require_option(bool holds, const char* place, const char* expected, std::int64_t got) {
  if (holds) return;
  throw Error({.kind = ErrorKind::kInput,
               .place = place,
               .problem = "this model cannot take it",
               .expected = expected,
               .got = fmt::format("{}", got),
               .remedy = {}});
}

Batch batch_of(const Config& config, const StepOptions& options) {
  Batch batch;
  batch.size = options.batch;
  batch.input_needs_grad = options.input_needs_grad;
  require_option(options.batch >= 1 && options.batch <= kMostTokens, "batch", "a whole number from 1 on",
                 options.batch);
  const std::int64_t positions = positions_of(config);
  const auto* llama = std::get_if<LlamaConfig>(&config);
  const std::int64_t window = llama != nullptr ? llama->window : 0;
  batch.length = options.sequence;
  if (batch.length == 0)
    batch.length = std::min(positions, window > 1 ? std::min(kLongestDefault, window - 1) : kLongestDefault);
  if (takes_images(config)) {
    require_option(options.sequence == 0, "sequence", "none: the model takes images", options.sequence);
    const auto* vit = std::get_if<ViTConfig>(&config);
    batch.image = options.image != 0 ? options.image : vit != nullptr ? vit->image : 224;
    require_option(batch.image >= 1 && batch.image <= 1 << 20, "image", "1 to 1048576 pixels", batch.image);
    const auto* resnet = std::get_if<HfResNetConfig>(&config);
    if (resnet != nullptr || std::holds_alternative<ResNetConfig>(config))
      require_option(batch.image >= 32, "image", "at least 32 pixels, which the stages halve", batch.image);
    if (const auto* unet = std::get_if<UNetConfig>(&config))
      require_option(batch.image % (std::int64_t{1} << unet->depth) == 0, "image",
                     "a size that can be halved often enough", batch.image);
    if (vit != nullptr)
      require_option(batch.image == vit->image, "image", "the size the positions are for", batch.image);
  } else {
    require_option(batch.length >= 1 && batch.length <= kMostTokens, "sequence", "a whole number from 1 on",
                   batch.length);
    if (const std::int64_t longest = longest_sequence_of(config); longest > 0 && window == 0)
      require_option(batch.length <= longest, "sequence", "at most as many tokens as the model has positions",
                     batch.length);
    if (window > 0)
      require_option(batch.length < window, "sequence",
                     "less than the attention's window: native models have no sliding window", batch.length);
    require_option(options.image == 0, "image", "none: the model takes tokens", options.image);
  }
  return batch;
}

struct Precision {
  std::string_view word;
  nn::DType parameters;
  bool has_master = false;
  std::optional<nn::DType> autocast = {};
};
constexpr Precision kPrecisions[] = {
    {"fp32", nn::DType::kFloat32},
    {"bf16", nn::DType::kBFloat16},
    {"fp16", nn::DType::kFloat16},
    {"bf16-master", nn::DType::kBFloat16, true},
    {"fp16-master", nn::DType::kFloat16, true},
    {"autocast-bf16", nn::DType::kFloat32, false, nn::DType::kBFloat16},
    {"autocast-fp16", nn::DType::kFloat32, false, nn::DType::kFloat16},
};

void check_training(const nn::Training& training) {
  require_option(training.micro_batches >= 1 && training.micro_batches <= 4096, "micro-batches",
                 "a whole number from 1 to 4096", training.micro_batches);
  if (!(training.clip_norm >= 0 && std::isfinite(training.clip_norm)))
    throw Error({.kind = ErrorKind::kInput,
                 .place = "clip-norm",
                 .problem = "no norm can be that",
                 .expected = "a number above 0, or 0 for none",
                 .got = fmt::format("{}", training.clip_norm),
                 .remedy = {}});
}

step::Step record_once(const Config& config, const StepOptions& options, const Batch& batch,
                       std::vector<nn::LeftGradient>& left) {
  nn::Runtime rt(options.target);
  rt.attention = options.attention;
  nn::Net net(rt, options.dtype);
  const std::unique_ptr<Model> model = build(net, config, batch);
  return nn::record_step(
      net, model->inputs(), [&] { return model->loss(); }, options.training, left);
}

}  // namespace

std::vector<std::string_view> precisions() {
  std::vector<std::string_view> words;
  for (const Precision& p : kPrecisions) words.push_back(p.word);
  return words;
}

void set_precision(StepOptions& options, std::string_view word) {
  for (const Precision& p : kPrecisions) {
    if (p.word != word) continue;
    options.dtype = p.parameters;
    options.training.master_copy = p.has_master;
    options.training.autocast = p.autocast;
    return;
  }
  throw Error({.kind = ErrorKind::kInput,
               .place = "precision",
               .problem = "the word is not known",
               .expected = fmt::format("{}", fmt::join(precisions(), ", ")),
               .got = std::string(word),
               .remedy = {}});
}

step::Step record(const Config& config, const StepOptions& options) {
  check(config);
  check_training(options.training);
  const Batch batch = batch_of(config, options);
  std::vector<nn::LeftGradient> left;
  step::Step step = record_once(config, options, batch, left);
  // Nearly always a step leaves the gradients that it was taken to find; a part of a larger storage is the exception.
  const bool is_steady = std::all_of(left.begin(), left.end(), [](const nn::LeftGradient& g) { return g.is_plain; });
  return is_steady ? std::move(step) : record_once(config, options, batch, left);
}

}  // namespace tidemark::zoo
