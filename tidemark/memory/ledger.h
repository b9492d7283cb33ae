#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tidemark/memory/timeline.h"
#include "tidemark/step/step.h"

namespace tidemark::memory::detail {

// Where the replay is, for whoever wants to know of a change.
struct Position {
  std::uint32_t event = kNoEvent;
  step::OpId op;
  step::CallId call;
  step::PassId pass;
  std::uint32_t unit = kNoUnit;
};

struct LedgerOptions {
  bool keep_changes = false;
  std::size_t runner_up_count = 0;
  std::int64_t watched_change = kNothingWatched;  // after so many changes, `when_watched` is called

  static constexpr std::int64_t kNothingWatched = -1;
};

// Adds up what comes and goes: the total, categories, the peak, the highest stretches and the peaks of module calls.
// It knows nothing of holders or plans.
class Ledger {
 public:
  Ledger(const step::Step& step, const LedgerOptions& options);

  // What is there before the first event; no change.
  void start_with(Category category, std::int64_t bytes);
  void start();

  void came(Category category, BlockId block, std::int64_t bytes) {
    add(category, bytes);
    if (total_ > stretch_best_.total_bytes) [[unlikely]]
      note_best();
    count(ChangeKind::kAlloc, category, block, bytes);
  }
  void went(Category category, BlockId block, std::int64_t bytes) {
    add(category, -bytes);
    count(ChangeKind::kFree, category, block, bytes);
  }

  // Called right after the watched change, while things are as it left them.
  std::function<void()> when_watched;
  bool has_passed_watched() const { return options_.watched_change >= 0 && change_count_ >= options_.watched_change; }

  Position at;  // kept up to date by the replay, except for pass, call and unit, which these set:
  void set_pass(step::PassId pass);
  void set_call(step::CallId call) {
    if (call != at.call) move(at.pass, call, at.unit);
  }
  void set_call(step::CallId call, std::uint32_t unit) { move(at.pass, call, unit); }
  void enter(step::CallId call);
  void leave(step::CallId call);

  // Moves everything it has found into `timeline`.
  void finish(Timeline& timeline);

 private:
  void add(Category category, std::int64_t bytes) {
    if (__builtin_add_overflow(total_, bytes, &total_)) [[unlikely]]
      fail_overflow();
    by_category_[static_cast<std::size_t>(category)] += bytes;
  }
  void count(ChangeKind kind, Category category, BlockId block, std::int64_t bytes) {
    ++change_count_;
    if (options_.keep_changes) keep(kind, category, block, bytes);
    if (change_count_ == options_.watched_change) [[unlikely]]
      when_watched();
  }
  void keep(ChangeKind kind, Category category, BlockId block, std::int64_t bytes);
  void note_best();
  void move(step::PassId pass, step::CallId call, std::uint32_t unit);
  void close_stretch();
  void keep_runner_up();
  [[noreturn]] void fail_overflow() const;

  const step::Step& step_;
  LedgerOptions options_;
  std::int64_t total_ = 0;
  std::int64_t change_count_ = 0;
  CategoryBytes by_category_ = {};
  std::int64_t start_bytes_ = 0;
  Moment peak_;
  CategoryBytes peak_by_category_ = {};
  std::int64_t peak_change_ = 0;

  // The present stretch: the total it began with, and its highest moment.
  std::int64_t stretch_level_ = 0;
  Moment stretch_best_;
  bool backward_ = false;
  std::vector<Moment> highest_;  // of finished stretches, highest first

  std::vector<step::CallId> entered_;
  std::vector<CallPeak> calls_;
  std::vector<Change> changes_;
};

}  // namespace tidemark::memory::detail
