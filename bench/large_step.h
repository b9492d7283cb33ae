#pragma once

#include <cstddef>

#include "tidemark/step/step.h"

namespace tidemark::bench {

// A step of about `op_count` ops shaped like a transformer's: equal layers of twelve forward ops with the saves, views
// and gradients that such layers have, then backward and optimizer.
step::Step large_step(std::size_t op_count);

}  // namespace tidemark::bench
