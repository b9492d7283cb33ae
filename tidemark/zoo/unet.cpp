#include "tidemark/zoo/unet.h"

#include "tidemark/nn/autocast.h"
#include "tidemark/nn/layers.h"
#include "tidemark/ops/aten.h"

namespace tidemark::zoo {

namespace {

using nn::Conv2d;
using nn::Dims;
using nn::GroupNorm;
using nn::Module;
using nn::Net;
using nn::Tensor;

constexpr double kEps = 1e-5;
constexpr nn::ConvShape kThree = {.kernel = 3, .stride = 1, .padding = 1, .has_bias = true};

class DoubleConv : public Module {
 public:
  DoubleConv(Net& net, step::ModuleId parent, std::string name, std::int64_t in, std::int64_t out, std::int64_t groups)
      : Module(net, parent, std::move(name), "DoubleConv"),
        conv1_(net, id(), "conv1", in, out, kThree),
        norm1_(net, id(), "norm1", groups, out, kEps),
        conv2_(net, id(), "conv2", out, out, kThree),
        norm2_(net, id(), "norm2", groups, out, kEps) {}

  Tensor operator()(const Tensor& x) const {
    return called({&x}, [&] {
      Tensor y = conv1_(x);
      y = norm1_(y);
      y = ops::silu(rt(), y);
      Tensor first = y;  // the variable keeps it while the second half runs
      y = conv2_(y);
      y = norm2_(y);
      y = ops::silu(rt(), y);
      first.reset();
      return y;
    });
  }

 private:
  Conv2d conv1_;
  GroupNorm norm1_;
  Conv2d conv2_;
  GroupNorm norm2_;
};

// nn.functional.interpolate(x, scale_factor=2.0, mode="nearest").
Tensor doubled(nn::Runtime& rt, const Tensor& x) {
  static const ops::Op op("aten.upsample_nearest2d.default");
  return op(rt,
            {{"self", x}, {"output_size", Dims{2 * x.size(2), 2 * x.size(3)}}, {"scales_h", 2.0}, {"scales_w", 2.0}});
}

class UNet : public Model, public Module {
 public:
  UNet(Net& net, const UNetConfig& c, const Batch& batch)
      : Module(net, {}, "", "UNet"),
        down_list_(net, id(), "down", "ModuleList"),
        down_(make_down(net, down_list_.id(), c)),
        pool_(net, id(), "pool", {.kernel = 2, .stride = 2, .padding = 0, .has_bias = false}),
        middle_(net, id(), "middle", c.width << (c.depth - 1), c.width << c.depth, c.groups),
        up_list_(net, id(), "up", "ModuleList"),
        up_(make_up(net, up_list_.id(), c)),
        merge_list_(net, id(), "merge", "ModuleList"),
        merge_(make_merge(net, merge_list_.id(), c)),
        out_(net, id(), "out", c.width, c.channels, {}),
        images_(net.rt.leaf(net.dtype, {batch.size, c.channels, batch.image, batch.image}, batch.input_needs_grad)),
        targets_(net.rt.leaf(net.dtype, {batch.size, c.channels, batch.image, batch.image}, false)) {}

  std::vector<Tensor> inputs() const override { return {images_, targets_}; }

  Tensor loss() const override {
    static const ops::Op mse_loss("aten.mse_loss.default");
    const Tensor made = called({&images_}, [&] { return forward(); });
    const Tensor compared = nn::raised(rt(), made);
    return mse_loss(rt(), {{"self", compared}, {"target", targets_}});
  }

 private:
  static std::vector<DoubleConv> make_down(Net& net, step::ModuleId list, const UNetConfig& c) {
    std::vector<DoubleConv> blocks;
    for (std::int64_t i = 0; i < c.depth; ++i)
      blocks.emplace_back(net, list, std::to_string(i), i == 0 ? c.channels : c.width << (i - 1), c.width << i,
                          c.groups);
    return blocks;
  }
  static std::vector<Conv2d> make_up(Net& net, step::ModuleId list, const UNetConfig& c) {
    std::vector<Conv2d> layers;
    for (std::int64_t i = c.depth; i-- > 0;)
      layers.emplace_back(net, list, std::to_string(c.depth - 1 - i), c.width << (i + 1), c.width << i, kThree);
    return layers;
  }
  static std::vector<DoubleConv> make_merge(Net& net, step::ModuleId list, const UNetConfig& c) {
    std::vector<DoubleConv> blocks;
    for (std::int64_t i = c.depth; i-- > 0;)
      blocks.emplace_back(net, list, std::to_string(c.depth - 1 - i), 2 * (c.width << i), c.width << i, c.groups);
    return blocks;
  }

  Tensor forward() const {
    std::vector<Tensor> skips;
    Tensor x = images_;
    for (const DoubleConv& block : down_) {
      x = block(x);
      skips.push_back(x);
      x = pool_(x);
    }
    x = middle_(x);
    for (std::size_t i = 0; i < up_.size(); ++i) {
      {
        Tensor large = doubled(rt(), x);
        Tensor y = up_[i](large);
        large.reset();
        x = std::move(y);
      }
      {
        std::vector<Tensor> both = {std::move(skips.back()), x};
        skips.pop_back();
        Tensor joined = nn::cat(rt(), both, 1);
        while (!both.empty()) both.pop_back();
        x = std::move(joined);
      }
      x = merge_[i](x);
    }
    Tensor y = out_(x);
    x.reset();
    return y;
  }

  Module down_list_;
  std::vector<DoubleConv> down_;
  nn::MaxPool2d pool_;
  DoubleConv middle_;
  Module up_list_;
  std::vector<Conv2d> up_;
  Module merge_list_;
  std::vector<DoubleConv> merge_;
  Conv2d out_;
  Tensor images_;
  Tensor targets_;
};

}  // namespace

std::unique_ptr<Model> make_unet(nn::Net& net, const UNetConfig& config, const Batch& batch) {
  return std::make_unique<UNet>(net, config, batch);
}

}  // namespace tidemark::zoo
