#include "tidemark/planner/largest.h"

#include <algorithm>
#include <map>

namespace tidemark::planner {

Largest find_largest(const LargestOptions& options, const std::function<SizeTrial(std::int64_t)>& try_size) {
  std::map<std::int64_t, SizeTrial> tried;
  const auto fits = [&](std::int64_t size) {
    const auto known = tried.find(size);
    return known != tried.end() ? known->second.fits : tried.emplace(size, try_size(size)).first->second.fits;
  };
  std::int64_t good = 0;                // fits
  std::int64_t bad = options.last + 1;  // does not, or is not allowed
  for (std::int64_t size = options.first; size <= options.last;) {
    if (!fits(size)) {
      bad = size;
      break;
    }
    good = size;
    if (size == options.last) break;
    size = size > options.last / 2 ? options.last : 2 * size;
  }
  while (good > 0 && bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  if (good > 0)
    for (const std::int64_t more : options.also)
      if (good <= options.last - more) fits(good + more);

  Largest largest;
  std::int64_t failed_bytes = -1;  // the most that a size needs which does not fit
  for (const auto& [size, trial] : tried) {
    largest.trials.push_back(trial);
    if (trial.fits) largest.size = size;
    if (failed_bytes >= 0 && (trial.fits || trial.peak_bytes < failed_bytes)) largest.is_monotone = false;
    if (!trial.fits) failed_bytes = std::max(failed_bytes, trial.peak_bytes);
  }
  largest.is_cut = largest.size == options.last;
  return largest;
}

}  // namespace tidemark::planner
