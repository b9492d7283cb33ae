#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tidemark/planner/moments.h"

namespace tidemark::planner {

// Totals at some moments, built up from intervals.
class Profile {
 public:
  void start(const std::vector<std::uint32_t>& moments, const Moments& m) {
    moments_ = &moments;
    values_.resize(moments.size());
    for (std::size_t i = 0; i < moments.size(); ++i) values_[i] = m.level[moments[i]] + m.extra_peak[moments[i]];
    changes_.assign(moments.size() + 1, 0);
  }

  void add(std::span<const Interval> intervals, std::int64_t bytes) {
    for (const Interval& interval : intervals) {
      changes_[place(interval.begin)] += bytes;
      changes_[place(interval.end)] -= bytes;
    }
  }

  void replace(std::size_t i, std::int64_t value) { values_[i] = value; }

  const std::vector<std::int64_t>& finish() {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] += sum += changes_[i];
    return values_;
  }

 private:
  std::size_t place(std::uint32_t event) const {
    return static_cast<std::size_t>(std::lower_bound(moments_->begin(), moments_->end(), event) - moments_->begin());
  }

  const std::vector<std::uint32_t>* moments_ = nullptr;
  std::vector<std::int64_t> values_;
  std::vector<std::int64_t> changes_;
};

}  // namespace tidemark::planner
