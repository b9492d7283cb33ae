#pragma once

#include <cstdint>
#include <string>

#include "console.h"

namespace tidemark::cli {

// How far a long search has come: one line on stderr that is written over, and gone at the end. Only on a terminal, and
// not for what is over at once.
class ProgressBar {
 public:
  explicit ProgressBar(const Console& console) : console_(console) {}
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(std::int64_t done, std::int64_t all, const std::string& words);

 private:
  const Console& console_;
  std::int64_t started_ms_ = -1;
  std::int64_t shown_ms_ = -1;
};

}  // namespace tidemark::cli
