#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/memory/timeline.h"
#include "tidemark/planner/prepared.h"

namespace tidemark::planner {

// Why a plan is as it is, as figures: where memory is highest, what a GiB more or less would change, what every kept op
// holds and every recomputed one buys, which calls could not be units. Equal layers are told as one. why.h answers
// questions about single modules and ops.

// Where in the step a moment lies, as far as it says what could lower it.
enum class PeakPlace : std::uint8_t {
  kStart,      // before the first op: parameters and what else is always there
  kOptimizer,  // while parameters are updated
  kHead,       // the loss, and what leads to it after the last block
  kRecompute,  // while a unit is recomputed
  kBlock,      // in a block, outside a recompute
  kOther,
};
inline constexpr std::array<std::string_view, 6> kPeakPlaceNames = {"start",     "optimizer", "head",
                                                                    "recompute", "block",     "other"};
inline constexpr std::string_view name_of(PeakPlace place) { return kPeakPlaceNames[static_cast<std::size_t>(place)]; }
PeakPlace place_of(const step::Step& step, const memory::Moment& moment);

// Moments of equal layers that are alike; the highest one stands for them.
struct BindingMoment {
  memory::Moment moment;
  PeakPlace place = PeakPlace::kOther;
  std::int64_t slack_bytes = 0;  // below the budget; negative when over it
  std::int64_t count = 1;
};

// What another budget would change: the best plan for it is found and its time compared. Both are differences between
// two optima where they are proved, and between the best plans known otherwise.
struct Price {
  std::int64_t step_bytes = 0;      // a GiB; a MiB, KiB or byte where plans differ by less than that altogether
  std::int64_t more_spares_ps = 0;  // of so many bytes more
  bool is_more_proved = false;
  bool can_be_less = false;  // some plan fits so many bytes less
  std::int64_t less_costs_ps = 0;
  bool is_less_proved = false;
};

// Why a group of ops is saved, or is not.
enum class GroupReason : std::uint8_t {
  kChosen,      // for its price
  kMustSave,    // saved: it must not run twice (collectives, routing), or random ops without a kept state
  kAskedFor,    // the user's patterns say so
  kView,        // not saved: it makes nothing of its own, only views or changes of what is there
  kChanged,     // not saved: its result is changed in place later, and a checkpoint would see that
  kNotReached,  // not saved: the recompute ends before it
};
inline constexpr std::array<std::string_view, 6> kGroupReasonNames = {"chosen", "must_save", "asked_for",
                                                                      "view",   "changed",   "not_reached"};
inline constexpr std::string_view name_of(GroupReason reason) {
  return kGroupReasonNames[static_cast<std::size_t>(reason)];
}

// A group of a unit: ops that are saved or recomputed together.
struct GroupFacts {
  std::vector<step::OpId> ops;
  std::vector<step::OpId> savers;
  bool is_saved = false;
  GroupReason reason = GroupReason::kChosen;
  std::int64_t bytes = 0;    // that its results take when it is saved
  std::int64_t time_ps = 0;  // that saving it spares, or would spare
};
// The groups of one unit of a plan.
std::vector<GroupFacts> facts_of_groups(const PreparedStep& prepared, const plan::Unit& unit);

// Equal groups of equal layers.
struct GroupRow {
  std::string units;   // "layers.{0-3}"
  std::string module;  // in the unit: "mlp.up"; empty: the unit itself
  std::string ops;     // "mm", "native_dropout, mul"
  bool is_saved = false;
  GroupReason reason = GroupReason::kChosen;
  std::int64_t count = 0;
  std::int64_t bytes_each = 0;
  std::int64_t ps_each = 0;

  // What a GiB of it would spare; 0 for nothing that takes bytes.
  std::int64_t ps_per_gib() const;
};

struct ExcludedCalls {
  Exclusion reason = Exclusion::kNone;
  std::int64_t count = 0;
  std::vector<std::string> examples;  // names, folded, at most three
};

struct Explanation {
  std::vector<BindingMoment> moments;  // highest first, the peak is the first
  Price price;                         // unless the plan is of no use, or none is needed
  bool has_price = false;
  std::vector<GroupRow> groups;  // of the plan's units: saved ones first, then by what a GiB of them is worth
  std::vector<ExcludedCalls> excluded;
  // The plan with the smallest peak: what no plan can go below.
  std::int64_t floor_bytes = 0;
  BindingMoment floor;
  memory::CategoryBytes floor_by_category = {};
};

struct ExplainOptions {
  std::int64_t room_bytes = 0;         // the budget without the reserve
  std::size_t moment_count = 5;        // at most
  std::int64_t max_work = 20'000'000;  // of each search at another budget
  bool is_searched = true;             // the result is the search's own; false: another method's, which may be worse
};

// Requires: `result` is of this step, with these options.
Explanation explain(const PreparedStep& prepared, const PlanResult& result, const ExplainOptions& options);

}  // namespace tidemark::planner
