#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tidemark/planner/convex.h"
#include "tidemark/planner/group_bound.h"
#include "tidemark/planner/narrow.h"
#include "tidemark/planner/problem.h"

namespace tidemark::planner {

// What the way to a state takes at least, by what is left of the kept bytes when they are divided by a modulus. Models
// repeat their layers: at the price that a kept byte has, to keep one more of certain tensors costs nothing, as often
// as there are layers, so that sums of sizes matter up to multiples of that size only. What they leave says how well
// whole groups can fill a budget. Sizes are rounded down to units. Proof: docs/how_plans_are_found.md, "Residues".

// Time and the price of the kept units, in parts of a ps, by residue. Whole numbers, so that sums are exact.
struct ResidueRow {
  const std::vector<double>* cost = nullptr;  // none: no way leads there
  std::int64_t id = -1;                       // of the costs, where they are kept
  Int128 base = 0;                            // to be added
  std::int64_t first = 0;                     // units kept of the first entry
  std::int64_t unit_cost = 0;                 // the price of a unit
  std::int64_t rest = 0;                      // bytes that rounding takes off at least

  bool is_empty() const { return cost == nullptr; }
};

struct ResidueOptions {
  std::int64_t most_residues = 1 << 16;
  std::int64_t max_cells = 0;           // in memory at a time
  std::int64_t max_work = 500'000'000;  // cells made
};

class Residues final : public GroupBound {
 public:
  // Nothing where it would be of no use: no size can be had for nothing, or numbers are too large.
  static std::optional<Residues> make(const Episode& episode, const std::vector<std::int64_t>& floors,
                                      std::int64_t budget_bytes, const Bounds& bounds, const ResidueOptions& options);

  // What would be chosen, without the rows.
  struct Units {
    std::int64_t unit_bytes = 0;
    std::int64_t modulus = 0;    // in units
    std::int64_t unit_cost = 0;  // on most of the way, in parts of a ps
    std::int64_t parts = 1;
  };
  static std::optional<Units> choose(const Episode& episode, const std::vector<std::int64_t>& floors,
                                     std::int64_t budget_bytes, const Bounds& bounds, const ResidueOptions& options);

  std::int64_t bound_ps() const override { return bound_ps_; }
  std::int64_t known_ps() const override { return Convex::kNotEnough - 1; }
  std::int64_t take_work() override { return std::exchange(work_, 0); }
  std::int64_t to_state(std::uint32_t state, std::int64_t bytes) override { return at(rows_[state], bytes); }
  void enter(const Entered& entered) override;
  std::int64_t to_arc(std::int64_t bytes) const override { return at(rows_[entered_], bytes); }
  std::int64_t to_group(std::size_t group, std::int64_t bytes) const override;

 private:
  using Costs = std::vector<double>;
  using Key = std::vector<std::int64_t>;

  Residues(const Episode& episode, const std::vector<std::int64_t>& floors, std::int64_t budget_bytes);
  bool choose_units(const Bounds& bounds, const ResidueOptions& options);
  void fill();
  std::int64_t at(const ResidueRow& row, std::int64_t bytes) const;
  std::int64_t place_of(const ResidueRow& row, std::int64_t units) const;
  std::int64_t ps_of(const ResidueRow& row, double cost, std::int64_t units) const;
  double cost_with(std::size_t group, std::int64_t place) const;
  bool is_few(const Arc& arc, std::size_t ways) const;
  void ask_singly(const Arc& arc);
  std::int64_t most_units(const Arc& arc) const;  // that may be kept before it
  bool leads_on(const Arc& arc) const;
  Key key_of(const Arc& arc) const;
  ResidueRow entered(const Arc& arc, const ResidueRow& row, Costs& costs) const;
  void close(Costs& costs, std::int64_t unit_cost) const;
  void take_group(const Costs& in, const ArcGroup& group, std::int64_t unit_cost, Costs& out);
  ResidueRow end_of(const Arc& arc) const;
  ResidueRow joined(const std::vector<std::uint32_t>& arcs);
  ResidueRow join(const std::vector<std::uint32_t>& arcs, const ResidueRow& first);
  ResidueRow kept(const Costs& costs);  // equal ones have the same id

  const Episode* episode_;
  const std::vector<std::int64_t>* floors_;
  std::int64_t budget_;
  std::int64_t unit_ = 1;
  std::int64_t count_ = 1;               // of residues
  std::int64_t scale_ = 1;               // parts of a ps
  std::vector<std::int64_t> unit_cost_;  // by state
  std::int64_t bound_ps_ = 0;
  std::int64_t work_ = 0;
  std::vector<ResidueRow> rows_;    // by state
  std::vector<std::int64_t> rest_;  // by state
  // Equal layers have equal rows, each of which is made and kept once.
  std::deque<Costs> costs_;
  std::array<Costs, 3> scratch_;
  std::unordered_multimap<std::uint64_t, std::size_t> by_hash_;  // into costs_
  std::map<Key, ResidueRow> joins_;
  std::deque<Costs> within_costs_;
  std::size_t within_count_ = 0;  // of them in use
  std::map<Key, std::vector<ResidueRow>> within_;
  std::uint32_t entered_ = 0;            // the first state of the arc in hand
  std::vector<ResidueRow> within_rows_;  // of it, by group
  // Or, where little is asked about the arc: its row, and what each group does to a cost.
  struct Turn {
    std::int64_t places = 0;
    double again = 0;
    double saved = 0;
  };
  bool is_asked_singly_ = false;
  std::vector<Turn> turns_;
};

}  // namespace tidemark::planner
