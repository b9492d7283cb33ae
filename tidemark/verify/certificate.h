#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/base/hash.h"
#include "tidemark/memory/workspace.h"
#include "tidemark/planner/space.h"
#include "tidemark/verify/side_hints.h"

namespace tidemark::verify {

// What lies beside a plan and proves that no other one that fits is cheaper, or that none fits. It says which question
// was asked, what is claimed, and hints for whoever checks it (check_certificate.h). Hints only make the check quick:
// whatever they are, what passes is true. docs/certificate.md is the format of the file.

enum class Claim : std::uint8_t {
  kOptimal,     // no plan that fits takes less than `bound_ps`, and the plan takes just that
  kBound,       // no plan that fits takes less than `bound_ps`
  kInfeasible,  // no plan fits: the peak of each is at least `least_peak_bytes`
};
inline constexpr std::array<std::string_view, 3> kClaimNames = {"optimal", "bound", "infeasible"};
inline constexpr std::string_view name_of(Claim claim) { return kClaimNames[static_cast<std::size_t>(claim)]; }

// For a part of the step in which nothing is kept for longer than itself: everything, or a micro-batch.
struct PartProof {
  std::int64_t bound_ps = 0;  // what no path through the part takes less than
  std::int64_t entries = 0;   // that the check makes
  // One: a bound for that mixture of the two sides alone, mostly the graph as it is. Several: for both sides at once,
  // with the bounds of each.
  std::vector<SideHints> sides = std::vector<SideHints>(1);

  friend bool operator==(const PartProof&, const PartProof&) = default;
};

struct Certificate {
  Claim claim = Claim::kBound;
  Hash128 step;                                     // fingerprint
  std::optional<Hash128> plan;                      // the hash of the plan's file; none when nothing fits
  std::string device;                               // for whose times it was made
  Hash128 times;                                    // those times
  std::optional<Hash128> workspace;                 // of the table of kernels' scratch memory, if there was one
  std::int64_t room_bytes = 0;                      // the budget without the reserve
  std::string against = "exact";                    // exact, rounded or reserved bytes
  std::optional<std::int64_t> rounding_bytes = {};  // what sizes are rounded up to; none: older files do not say
  planner::SpaceOptions space;                      // which plans were allowed
  std::int64_t bound_ps = 0;
  std::int64_t least_peak_bytes = 0;
  std::vector<PartProof> parts;  // empty when nothing fits, or the bound is 0

  friend bool operator==(const Certificate&, const Certificate&) = default;
};

// What a certificate names its times and its table by.
Hash128 hash_of(const planner::Times& times);
Hash128 hash_of(const memory::WorkspaceTable& table);

}  // namespace tidemark::verify
