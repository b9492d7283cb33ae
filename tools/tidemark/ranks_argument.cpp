#include "ranks_argument.h"

#include "commands.h"

namespace tidemark::cli {

void add_ranks_options(CLI::App& app, RanksArgument& argument) {
  add_count(app, "--ranks", argument.ranks, "devices that take part in the step's collectives");
  add_count(app, "--ranks-per-node", argument.ranks_per_node, "of them in a node, joined by its network; 0: all");
}

}  // namespace tidemark::cli
