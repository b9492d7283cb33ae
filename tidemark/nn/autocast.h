#pragma once

#include "tidemark/fake/runtime.h"

// What torch.autocast does before an op runs. It lowers products, convolutions and attention, raises losses to single
// precision, and on CUDA other delicate ops too (norms, powers). Both lists are PyTorch 2.13's (autocast_mode.h);
// whoever calls one of these ops asks here first.

namespace tidemark::nn {

// As an op that autocast lowers is given it: a parameter's cast is made once and kept as long as autocast is on.
ops::Tensor lowered(fake::Runtime& rt, const ops::Tensor& t);

// As an op that autocast raises is given it.
ops::Tensor raised(fake::Runtime& rt, const ops::Tensor& t);
ops::Tensor raised_on_cuda(fake::Runtime& rt, const ops::Tensor& t);

// Tensors joined; autocast gives all of them the widest type first.
ops::Tensor cat(fake::Runtime& rt, const std::vector<ops::Tensor>& tensors, std::int64_t dim);

}  // namespace tidemark::nn
