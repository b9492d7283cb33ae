#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tidemark/plan/plan.h"
#include "tidemark/planner/space.h"
#include "tidemark/step/step.h"

namespace tidemark::planner {

// Which of several plans that take the same time is the better one: that with fewer units; then the more even one; then
// the one whose units are called first; then the one whose saved ops come first. A total order of the plans of a space,
// so that the best plan does not depend on the way it was found.
//
// Even is what spreads units over equal layers: those whose names differ in a number only. Of the layers of a name in
// the order in which they run, with units at x1 < x2 < ... < xm of n, it is the sum of the squares of x1 + 1, x2 - x1,
// ..., n - xm; the smaller, the more even. A plan's is the sum over all names.
class TieOrder {
 public:
  TieOrder(const step::Step& step, const Space& space);

  std::int64_t unevenness(const plan::Plan& plan) const;
  // Requires: both take the same time.
  bool is_better(const plan::Plan& a, const plan::Plan& b) const;

 private:
  struct Layer {
    std::uint32_t name = 0;      // of layers that are equal but for a number
    std::uint32_t position = 0;  // among them
  };

  // When units and their saved ops run: ids do not matter.
  struct Order {
    std::vector<std::uint32_t> calls;
    std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>> saved;

    friend auto operator<=>(const Order&, const Order&) = default;
  };
  Order order_of(const plan::Plan& plan) const;

  std::vector<std::uint32_t> begins_;         // by op: its event
  std::vector<Layer> layer_of_;               // by call, of candidates
  std::vector<std::uint32_t> layer_count_;    // by name
  std::vector<std::uint32_t> begin_of_call_;  // its first event: calls in the order in which they run
};

}  // namespace tidemark::planner
