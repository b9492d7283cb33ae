#pragma once

#include <CLI/CLI.hpp>

#include "tidemark/cost/step_cost.h"

namespace tidemark::cli {

// How many devices take part in a step's collectives, for the commands that price steps.
struct RanksArgument {
  std::size_t ranks = 1;
  std::size_t ranks_per_node = 0;

  cost::PriceOptions price_options() const {
    return {.ranks = static_cast<std::int64_t>(ranks), .ranks_per_node = static_cast<std::int64_t>(ranks_per_node)};
  }
};

// --ranks and --ranks-per-node.
void add_ranks_options(CLI::App& app, RanksArgument& argument);

}  // namespace tidemark::cli
