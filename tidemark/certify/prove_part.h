#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tidemark/planner/problem.h"
#include "tidemark/verify/certificate.h"
#include "tidemark/verify/least_peaks.h"
#include "tidemark/verify/path_check.h"
#include "tidemark/verify/sides.h"
#include "tidemark/verify/time_lines.h"

namespace tidemark::certify {

// The proof of a bound for one part of a step, by trying the check with hints of several kinds: on the graph as it is,
// and where what the program parks in the forward counts, too, on that side alone, on the mixture whose bound is
// highest, and on both at once, by mixtures or by each side with prices on the other. The first that comes to its end
// without a way below the bound is the proof.
class PartProver {
 public:
  PartProver(const planner::Problem& problem, std::size_t episode, std::int64_t room_bytes, std::int64_t max_entries);

  // Fills in the rest of a part that has its bound. kFound: what the check knows of the part has a way below it.
  verify::PathAnswer prove(verify::PartProof& part) const;

 private:
  // One side, or a mixture, with what checks on it need.
  struct Side {
    Side(planner::Episode of, std::int64_t share, std::int64_t room_bytes);
    Side(const Side&) = delete;
    Side& operator=(const Side&) = delete;

    planner::Episode episode;
    std::int64_t forward_share;
    verify::LeastPeaks peaks;
    std::vector<std::int64_t> prices;
    verify::TimeLines lines;
  };

  verify::PathAnswer look(const Side& side, const verify::SideHints& hints, std::int64_t max_entries,
                          verify::PartProof& part) const;
  verify::PathAnswer prove_alone(const Side& side, verify::PartProof& part) const;
  verify::PathAnswer prove_both(std::vector<verify::SideHints> hints, std::int64_t max_entries,
                                verify::PartProof& part) const;
  verify::SideHints hints_for(verify::SideHints hints) const;
  std::vector<verify::SideHints> mixtures(std::int64_t middle_share) const;
  std::vector<verify::SideHints> priced_sides(std::int64_t share) const;
  void add_groups(verify::SideHints& hints, std::int64_t bound_ps) const;

  const planner::Episode& here_;
  const planner::Episode* forward_ = nullptr;
  verify::Sides sides_;  // where there are two
  std::int64_t room_bytes_;
  std::int64_t max_entries_;
};

}  // namespace tidemark::certify
