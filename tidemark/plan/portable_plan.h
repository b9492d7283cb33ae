#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/base/hash.h"
#include "tidemark/plan/plan.h"
#include "tidemark/step/step.h"

namespace tidemark::plan {

// A plan in words: what a plan file holds, and all that is needed to apply it to a model without the step. Modules,
// parameters and ops go by name; the ops of a unit are listed, so that who applies the plan can tell whether the model
// still runs them.

// Ops of one name that a plan runs again and nobody knows the time of.
struct UnpricedOps {
  std::string op;
  std::int64_t count = 0;
  std::int64_t bytes = 0;  // that they touch

  friend bool operator==(const UnpricedOps&, const UnpricedOps&) = default;
};

// What was asked for and what was promised. Nothing of it is believed when a plan is checked.
struct PlanFacts {
  std::string device;
  std::int64_t budget_bytes = 0;
  std::int64_t reserve_bytes = 0;
  std::string against = "exact";                    // exact, rounded or reserved bytes
  std::optional<std::int64_t> rounding_bytes = {};  // what sizes are rounded up to; none: older files do not say
  std::string termination = "given";                // how a search ended that has a plan; given: nobody searched
  std::int64_t start_bytes = 0;                     // there before the step begins, predicted
  std::int64_t peak_bytes = 0;                      // predicted
  std::int64_t recompute_ps = 0;                    // predicted
  std::int64_t bound_ps = 0;                        // no plan that fits takes less
  std::int64_t smallest_peak_bytes = 0;             // of any plan
  std::vector<UnpricedOps> unpriced = {};           // in recompute_ps they count as nothing

  friend bool operator==(const PlanFacts&, const PlanFacts&) = default;
};

// What sizes are rounded up to in a file: what it says, or what files mean that are older than the field.
std::int64_t rounding_of(std::string_view against, const std::optional<std::int64_t>& said);

// Whether a file may say so: exact bytes are not rounded, and the model of PyTorch's cache has a rounding of its own.
bool may_round_to(std::string_view against, std::int64_t rounding_bytes);
inline constexpr std::string_view kRoundingRule =
    "1 for exact bytes, 512 for reserved ones, 1 to 2^30 for rounded ones";

// A tensor's type and sizes.
struct Shape {
  std::string dtype;
  std::vector<std::int64_t> sizes;

  friend auto operator<=>(const Shape&, const Shape&) = default;
};

// What a call runs, modules inside it included. Equal layers share one.
struct Body {
  std::vector<std::string> ops;  // in the order in which they run
  std::vector<Shape> inputs;     // of the call: what a checkpoint keeps

  friend auto operator<=>(const Body&, const Body&) = default;
};

struct PortableUnit {
  std::string module;      // "" is the root
  std::uint32_t call = 0;  // how many calls of the module with gradients came before it in the micro-batch
  std::uint32_t micro_batch = 0;
  std::string pass;  // "forward" or "loss"
  bool preserve_rng = true;
  bool early_stop = true;
  std::uint32_t body = 0;
  std::vector<std::uint32_t> saved;  // positions in the body's ops, ascending
  std::uint32_t reach = 0;           // how many of the body's ops a recompute gets to
  std::vector<std::string> buffers;  // that the call changes: who applies the plan restores them after a recompute

  friend bool operator==(const PortableUnit&, const PortableUnit&) = default;
};

// How often a module of a unit is called in each micro-batch.
struct CallCounts {
  std::string module;
  std::vector<std::uint32_t> by_micro_batch;

  friend bool operator==(const CallCounts&, const CallCounts&) = default;
};

struct ModuleName {
  std::string name;
  std::string type;

  friend bool operator==(const ModuleName&, const ModuleName&) = default;
};

struct ParameterShape {
  std::string name;
  Shape shape;
  bool trainable = false;

  friend bool operator==(const ParameterShape&, const ParameterShape&) = default;
};

struct PortablePlan {
  Hash128 fingerprint;  // of the step
  PlanFacts facts;
  std::vector<ModuleName> modules;
  std::vector<ParameterShape> parameters;  // a tied weight stands under each of its names
  std::vector<Shape> inputs;  // of the model's calls, the largest sizes; empty when unknown, as in files of before
  std::vector<std::string> checkpointed;  // modules that ran under checkpoints of the model's own, in their order
  std::vector<Body> bodies;
  std::vector<CallCounts> calls;  // in the order of the modules' names
  // Micro-batches, but for the last, after which an optimizer steps, as those of adversaries do in turn; ascending.
  std::vector<std::uint32_t> early_steps;
  std::vector<PortableUnit> units;

  friend bool operator==(const PortablePlan&, const PortablePlan&) = default;
};

// Requires: a plan that can be replayed on the step.
PortablePlan describe(const step::Step& step, const Plan& plan, const PlanFacts& facts);

// The plan in the step's own ids. `name` stands for the plan in errors.
// Throws: Error when it is of another step, or names what the step does not have.
Plan find_in(const step::Step& step, const PortablePlan& plan, const std::string& name);

}  // namespace tidemark::plan
