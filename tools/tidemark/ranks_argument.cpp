#include "ranks_argument.h"

namespace tidemark::cli {

void add_ranks_options(CLI::App& app, RanksArgument& argument) {
  app.add_option("--ranks", argument.ranks, "devices that take part in the step's collectives (1)")->type_name("N");
  app.add_option("--ranks-per-node", argument.ranks_per_node,
                 "of them in one node; the device's network joins nodes (by default one node)")
      ->type_name("N");
}

}  // namespace tidemark::cli
