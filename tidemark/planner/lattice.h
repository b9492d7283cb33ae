#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tidemark/planner/group_bound.h"
#include "tidemark/planner/narrow.h"
#include "tidemark/planner/problem.h"

namespace tidemark::planner {

// What the way to a state takes at least, by the bytes it keeps, with groups whole: sizes are rounded down to
// multiples of a unit, and every way of saving such sizes is tried. Tensors of one model tend to be multiples of one
// size, so that for the right unit little is lost by it and the bound is far sharper than that of parts of groups.

// What rounding leaves of the sizes, the remainders, has a price of its own: where all units are taken, the remainders
// have to do with what is left of the bytes.

// Times by the number of units that may be kept: those for `first` units, first + 1, ...; fewer are not enough, more
// than the last one's do not help. Never rising. Whole numbers below 2^53, so that sums are exact.
struct LatticeRow {
  std::int64_t first = 0;
  std::vector<double> ps;
  std::vector<double> priced;  // the least of time and price of the remainders; empty: they have no price
  // Set where the row was cut off below: what it says for that many units is a bound for fewer.
  std::optional<std::int64_t> known_from = {};

  bool is_empty() const { return ps.empty(); }
};

struct LatticeOptions {
  std::int64_t target_ps = 0;             // longer paths are left out
  std::int64_t max_cells = 0;             // in memory at a time
  std::int64_t max_work = 1'000'000'000;  // cells made
};

class Lattice final : public GroupBound {
 public:
  // Nothing when times are too long for it.
  static std::optional<Lattice> make(const Episode& episode, const std::vector<std::int64_t>& floors,
                                     std::int64_t budget_bytes, const Bounds& bounds, const LatticeOptions& options);

  std::int64_t unit_bytes() const { return unit_; }
  std::int64_t units_of(std::int64_t bytes) const;  // rounded down
  // What a row says for so many bytes; Convex::kNotEnough where they are not enough.
  std::int64_t at(const LatticeRow& row, std::int64_t bytes) const;
  std::int64_t bound_ps() const override { return bound_ps_; }  // above the target: no path is that short
  std::int64_t known_ps() const override { return target_ps_; }
  std::int64_t take_work() override { return std::exchange(work_, 0); }
  std::int64_t to_state(std::uint32_t state, std::int64_t bytes) override { return at(row(state), bytes); }
  void enter(const Entered& entered) override;
  std::int64_t to_arc(std::int64_t bytes) const override { return at(within_[0], bytes); }
  std::int64_t to_group(std::size_t group, std::int64_t bytes) const override { return at(within_[group], bytes); }
  const LatticeRow& row(std::uint32_t state);
  // For the way to an arc and the groups before each: entry j has those before group j, the last one all of them.
  // Right for up to `most_units`, and down to `least_units`. Asking for arcs from later states first costs least.
  std::vector<LatticeRow> within(const Arc& arc, std::int64_t least_units, std::int64_t most_units);

 private:
  Lattice(const Episode& episode, const std::vector<std::int64_t>& floors, std::int64_t budget_bytes,
          const Bounds& bounds, const LatticeOptions& options);
  std::int64_t rest_of(std::int64_t bytes) const;       // that rounding leaves
  double price_of(std::int64_t bytes) const;            // of remainders, rounded down
  void cut(LatticeRow& row, std::int64_t bytes) const;  // no more are left
  void trim(LatticeRow& row, std::uint32_t state) const;
  void find_blocks();
  void choose_unit(const LatticeOptions& options);
  void choose_price();
  // The rows of a block's states, given that of its first, and that of the next block's first.
  std::vector<LatticeRow> fill_block(std::size_t block, LatticeRow first);
  std::vector<LatticeRow> run_through(const Arc& arc, LatticeRow row, std::int64_t most_units);

  const Episode* episode_;
  const std::vector<std::int64_t>* floors_;
  std::int64_t budget_;
  const Bounds* bounds_;
  std::int64_t target_ps_;
  std::int64_t unit_ = 1;
  std::int64_t price_ = 0;  // of a byte of a remainder, in 2^-kPriceBits ps
  std::int64_t bound_ps_ = 0;
  std::int64_t work_ = 0;
  std::vector<std::uint32_t> begin_;  // by block: its first state, which all paths visit; and the last state
  std::vector<LatticeRow> starts_;    // by block: the row of its first state
  std::size_t block_ = 0;             // whose rows are here
  std::vector<LatticeRow> rows_;      // by state of the block
  std::vector<LatticeRow> within_;    // of the arc in hand, by group
};

}  // namespace tidemark::planner
