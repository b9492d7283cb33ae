#include "progress_bar.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace tidemark::cli {

namespace {

constexpr std::int64_t kFirstMs = 500;  // what takes less needs no bar
constexpr std::int64_t kEachMs = 100;
constexpr std::int64_t kCells = 40;

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void ProgressBar::show(std::int64_t done, std::int64_t all, const std::string& words) {
  if (!console_.is_watched()) return;
  const std::int64_t now = now_ms();
  if (started_ms_ < 0) started_ms_ = now;
  if (now - started_ms_ < kFirstMs || (shown_ms_ >= 0 && now - shown_ms_ < kEachMs)) return;
  shown_ms_ = now;
  const double part = all <= 0 ? 1 : std::clamp(static_cast<double>(done) / static_cast<double>(all), 0.0, 1.0);
  const auto filled = static_cast<std::size_t>(part * kCells);
  console_.message(fmt::format("\r[{}{}] {:3.0f} %  {}\x1b[K", std::string(filled, '#'),
                               std::string(kCells - filled, '.'), 100 * part, words));
}

ProgressBar::~ProgressBar() {
  if (shown_ms_ >= 0) console_.message("\r\x1b[K");
}

}  // namespace tidemark::cli
