#include "tidemark/memory/ledger.h"

#include <algorithm>

#include "tidemark/base/error.h"

namespace tidemark::memory::detail {

namespace {

constexpr std::int64_t kNothing = -1;  // below every total

}  // namespace

Ledger::Ledger(const step::Step& step, const LedgerOptions& options)
    : step_(step), options_(options), calls_(step.tables().calls.size()) {
  stretch_best_.total_bytes = kNothing;
  highest_.reserve(options.runner_up_count + 2);
}

void Ledger::start_with(Category category, std::int64_t bytes) { add(category, bytes); }

void Ledger::start() {
  start_bytes_ = total_;
  stretch_level_ = total_;
  peak_.total_bytes = total_;
  peak_by_category_ = by_category_;
}

void Ledger::keep(ChangeKind kind, Category category, BlockId block, std::int64_t bytes) {
  changes_.push_back({kind, category, block, bytes, total_, at.event, at.op, at.unit});
}

void Ledger::note_best() {
  stretch_best_ = {total_, at.event, at.op, at.call, at.pass, at.unit};
  if (total_ <= peak_.total_bytes) return;
  peak_ = stretch_best_;
  peak_by_category_ = by_category_;
  peak_change_ = change_count_ + 1;  // the one that is being counted
}

void Ledger::set_pass(step::PassId pass) {
  move(pass, at.call, at.unit);
  const step::PassKind kind = step_[pass].kind;
  backward_ = kind == step::PassKind::kBackward || kind == step::PassKind::kRecompute;
}

void Ledger::enter(step::CallId call) {
  move(at.pass, call, at.unit);
  entered_.push_back(call);
  calls_[call.index()].forward_bytes = total_;
}

void Ledger::leave(step::CallId call) {
  close_stretch();
  entered_.pop_back();
  const step::CallId parent = step_[call].parent;
  if (!entered_.empty()) {
    CallPeak& around = calls_[entered_.back().index()];
    around.forward_bytes = std::max(around.forward_bytes, calls_[call.index()].forward_bytes);
  }
  at.call = parent;
}

void Ledger::move(step::PassId pass, step::CallId call, std::uint32_t unit) {
  close_stretch();
  at.pass = pass;
  at.call = call;
  at.unit = unit;
}

void Ledger::close_stretch() {
  const std::int64_t most = std::max(stretch_level_, stretch_best_.total_bytes);
  if (!entered_.empty()) {
    std::int64_t& bytes = calls_[entered_.back().index()].forward_bytes;
    bytes = std::max(bytes, most);
  }
  if (backward_ && at.call.has_value()) {
    std::int64_t& bytes = calls_[at.call.index()].backward_bytes;
    bytes = std::max(bytes, most);
  }
  if (stretch_best_.total_bytes != kNothing) keep_runner_up();
  stretch_level_ = total_;
  stretch_best_.total_bytes = kNothing;
}

// One more than asked for are kept, since the peak's own stretch is among them.
void Ledger::keep_runner_up() {
  const auto is_higher = [](const Moment& a, const Moment& b) { return a.total_bytes > b.total_bytes; };
  if (highest_.size() > options_.runner_up_count && !is_higher(stretch_best_, highest_.back())) return;
  highest_.insert(std::upper_bound(highest_.begin(), highest_.end(), stretch_best_, is_higher), stretch_best_);
  if (highest_.size() > options_.runner_up_count + 1) highest_.pop_back();
}

void Ledger::finish(Timeline& timeline) {
  close_stretch();
  timeline.start_bytes = start_bytes_;
  timeline.end_bytes = total_;
  timeline.peak = peak_;
  timeline.peak_by_category = peak_by_category_;
  timeline.peak_change = peak_change_;
  if (!highest_.empty() && highest_.front() == peak_) highest_.erase(highest_.begin());
  if (highest_.size() > options_.runner_up_count) highest_.pop_back();
  timeline.runners_up = std::move(highest_);
  for (std::size_t i = calls_.size(); i-- > 0;) {  // parents stand before children
    const step::CallId parent = step_.tables().calls[i].parent;
    if (parent.is_none()) continue;
    std::int64_t& around = calls_[parent.index()].backward_bytes;
    around = std::max(around, calls_[i].backward_bytes);
  }
  timeline.calls = std::move(calls_);
  timeline.changes = std::move(changes_);
  timeline.change_count = change_count_;
}

void Ledger::fail_overflow() const {
  throw Error({.kind = ErrorKind::kLimit,
               .place = "replay",
               .problem = "the bytes alive together do not fit 63 bits",
               .expected = "less than 2^63",
               .got = {},
               .remedy = {}});
}

}  // namespace tidemark::memory::detail
