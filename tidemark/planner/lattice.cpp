#include "tidemark/planner/lattice.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tidemark/planner/convex.h"
#include "tidemark/planner/floors.h"
#include "tidemark/planner/ways.h"

namespace tidemark::planner {

namespace {

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// The same figures on every processor, in fewer steps where it has wider registers.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("avx2", "default")))
#endif
void take_cheaper(const double* in, std::int64_t size, std::int64_t units, double time_ps, double saved_ps, double* out,
                  std::int64_t count) {
  const std::int64_t same = std::min(size, count);
  for (std::int64_t c = 0; c < same; ++c) out[c] = in[c] + time_ps;
  for (std::int64_t c = same; c < count; ++c) out[c] = in[size - 1] + time_ps;
  for (std::int64_t c = units; c < count; ++c) {
    const double saved = in[c - units] + saved_ps;
    out[c] = out[c] < saved ? out[c] : saved;
  }
}

std::vector<double> after_group(const std::vector<double>& in, std::int64_t units, double time_ps, double saved_ps,
                                std::int64_t count) {
  std::vector<double> out(static_cast<std::size_t>(count));
  take_cheaper(in.data(), static_cast<std::int64_t>(in.size()), units, time_ps, saved_ps, out.data(), count);
  return out;
}

LatticeRow after_group(const LatticeRow& row, std::int64_t units, double time_ps, double rest_price,
                       std::int64_t most_units) {
  LatticeRow result;
  result.first = row.first;
  if (row.known_from) result.known_from = *row.known_from + units;
  const auto size = static_cast<std::int64_t>(row.ps.size());
  const std::int64_t count = std::min(size + units, most_units - row.first + 1);
  if (row.is_empty() || count <= 0) return result;
  result.ps = after_group(row.ps, units, time_ps, 0, count);
  if (!row.priced.empty()) result.priced = after_group(row.priced, units, time_ps, rest_price, count);
  return result;
}

void take_least(std::vector<double>& ps, const std::vector<double>& other, std::size_t shift) {
  const std::size_t end = std::max(ps.size(), shift + other.size());
  ps.resize(end, ps.back());
  for (std::size_t c = shift; c < end; ++c)
    ps[c] = std::min(ps[c], c - shift < other.size() ? other[c - shift] : other.back());
}

// Both ways lead there.
void join(LatticeRow& row, LatticeRow other) {
  if (other.is_empty()) return;
  if (row.is_empty()) {
    row = std::move(other);
    return;
  }
  if (row.first > other.first) std::swap(row, other);
  const auto shift = static_cast<std::size_t>(other.first - row.first);
  take_least(row.ps, other.ps, shift);
  if (!row.priced.empty()) take_least(row.priced, other.priced, shift);
}

// What the way to a state may keep; as much as it likes where nothing comes after.
std::int64_t most_bytes(const std::vector<std::int64_t>& floors, std::int64_t budget_bytes, std::uint32_t state) {
  return budget_bytes - floors[state];
}

}  // namespace

std::int64_t Lattice::units_of(std::int64_t bytes) const { return floor_div(bytes, unit_); }

std::int64_t Lattice::rest_of(std::int64_t bytes) const { return bytes - units_of(bytes) * unit_; }

double Lattice::price_of(std::int64_t bytes) const {
  return static_cast<double>(static_cast<std::int64_t>((static_cast<Int128>(bytes) * price_) >> kPriceBits));
}

// Of the ways that take all units, the remainders come to at most what is left; so their time is at least what they
// take with the price of the remainders, less the price of what is left. Those that take fewer units take at least
// what the cell before says; and so on.
std::int64_t Lattice::at(const LatticeRow& row, std::int64_t bytes) const {
  if (row.is_empty()) return Convex::kNotEnough;
  const std::int64_t all = units_of(bytes);
  const std::int64_t units = row.known_from ? std::max(all, *row.known_from) : all;
  if (units < row.first) return Convex::kNotEnough;
  const auto i = static_cast<std::size_t>(units - row.first);
  if (i >= row.ps.size()) return static_cast<std::int64_t>(row.ps.back());
  const double ps = row.ps[i];
  if (row.priced.empty() || (row.known_from && all <= *row.known_from)) return static_cast<std::int64_t>(ps);
  double sharper = row.priced[i] - price_of(rest_of(bytes)) - 1;  // rounded up
  if (i > 0) sharper = std::min(sharper, row.ps[i - 1]);
  return static_cast<std::int64_t>(std::max(ps, sharper));
}

void Lattice::cut(LatticeRow& row, std::int64_t bytes) const {
  const std::int64_t keep = units_of(bytes) - row.first + 1;
  const auto size = static_cast<std::int64_t>(row.ps.size());
  if (keep > size) return;
  const std::int64_t last_ps = at(row, bytes);
  row.ps.resize(static_cast<std::size_t>(std::max<std::int64_t>(keep, 0)));
  if (!row.priced.empty()) row.priced.resize(row.ps.size());
  if (row.ps.empty()) return;
  row.ps.back() = static_cast<double>(last_ps);
  if (!row.priced.empty()) row.priced.back() = std::max(row.priced.back(), row.ps.back());  // a price is not negative
}

std::optional<Lattice> Lattice::make(const Episode& episode, const std::vector<std::int64_t>& floors,
                                     std::int64_t budget_bytes, const Bounds& bounds, const LatticeOptions& options) {
  constexpr std::int64_t kMostPs = std::int64_t{1} << 50;
  if (options.target_ps > kMostPs) return std::nullopt;
  for (const Arc& arc : episode.arcs) {  // whose sums with the target have to be exact, too
    std::int64_t ps = arc.base_ps;
    if (ps > kMostPs) return std::nullopt;
    for (const ArcGroup& group : arc.groups) {
      if (group.time_ps > kMostPs) return std::nullopt;
      ps += group.time_ps;
      if (ps > kMostPs) return std::nullopt;
    }
  }
  return Lattice(episode, floors, budget_bytes, bounds, options);
}

Lattice::Lattice(const Episode& episode, const std::vector<std::int64_t>& floors, std::int64_t budget_bytes,
                 const Bounds& bounds, const LatticeOptions& options)
    : episode_(&episode), floors_(&floors), budget_(budget_bytes), bounds_(&bounds), target_ps_(options.target_ps) {
  find_blocks();
  choose_unit(options);
  choose_price();
  LatticeRow row;
  row.ps = {0};
  if (price_ > 0) row.priced = {0};
  for (std::size_t block = 0; block + 1 < begin_.size(); ++block) {
    starts_.push_back(row);
    rows_ = fill_block(block, std::move(row));
    block_ = block;
    row = std::move(rows_.back());
    rows_.pop_back();
  }
  bound_ps_ = row.is_empty() ? target_ps_ + 1 : std::min(static_cast<std::int64_t>(row.ps.back()), target_ps_ + 1);
}

// Leaves out cells whose ways, with what comes after at least, take longer than the target: of those that keep little
// from below, of those that keep much from above. Nor is anything gained by cells that say the same as the one before.
void Lattice::trim(LatticeRow& row, std::uint32_t state) const {
  std::size_t end = row.ps.size();
  const bool has_price = !row.priced.empty();
  while (end > 1 && row.ps[end - 2] == row.ps[end - 1] && (!has_price || row.priced[end - 2] == row.priced[end - 1]))
    --end;
  const auto is_too_long = [&](std::size_t cell) {
    const std::int64_t bytes = (row.first + static_cast<std::int64_t>(cell)) * unit_;
    return static_cast<std::int64_t>(row.ps[cell]) + bounds_->rest_ps(state, bytes) > target_ps_;
  };
  while (end > 0 && is_too_long(end - 1)) --end;
  std::size_t first = 0;
  while (first < end && is_too_long(first)) ++first;
  const auto take = [&](std::vector<double>& cells) {
    cells.resize(end);
    cells.erase(cells.begin(), cells.begin() + static_cast<std::ptrdiff_t>(first));
  };
  take(row.ps);
  if (has_price) take(row.priced);
  row.first += static_cast<std::int64_t>(first);
}

// A block begins at a state that no arc passes by.
void Lattice::find_blocks() {
  std::uint32_t reach = 0;  // the last state that an arc from an earlier one leads to
  for (std::uint32_t state = 0; state + 1 < episode_->state_count; ++state) {
    const std::uint32_t begin = episode_->first_arc[state];
    const std::uint32_t end = episode_->first_arc[state + 1];
    if (reach <= state && (state == 0 || begin < end)) begin_.push_back(state);
    for (std::uint32_t a = begin; a < end; ++a)
      if ((*floors_)[episode_->arcs[a].to] != kNoPath) reach = std::max(reach, episode_->arcs[a].to);
  }
  begin_.push_back(episode_->state_count - 1);
}

std::vector<LatticeRow> Lattice::fill_block(std::size_t block, LatticeRow first) {
  const std::uint32_t from = begin_[block];
  const std::uint32_t end = begin_[block + 1];
  std::vector<LatticeRow> rows(end - from + 1);
  rows[0] = std::move(first);
  for (std::uint32_t state = from; state < end; ++state) {
    LatticeRow& row = rows[state - from];
    if ((*floors_)[state] == kNoPath) row = {};
    cut(row, most_bytes(*floors_, budget_, state));
    trim(row, state);
    if (row.is_empty()) continue;
    for (std::uint32_t a = episode_->first_arc[state]; a < episode_->first_arc[state + 1]; ++a) {
      const Arc& arc = episode_->arcs[a];
      if ((*floors_)[arc.to] == kNoPath) continue;
      const std::int64_t keep_units = units_of(arc.keep_bytes);
      const std::int64_t most = units_of(most_bytes(*floors_, budget_, arc.to)) - keep_units;
      LatticeRow way = std::move(run_through(arc, row, most).back());
      way.first += keep_units;
      const auto base_ps = static_cast<double>(arc.base_ps);
      const double priced_ps = base_ps + price_of(rest_of(arc.keep_bytes));
      for (double& ps : way.ps) ps += base_ps;
      for (double& ps : way.priced) ps += priced_ps;
      trim(way, arc.to);
      join(rows[arc.to - from], std::move(way));
    }
  }
  return rows;
}

std::vector<LatticeRow> Lattice::run_through(const Arc& arc, LatticeRow row, std::int64_t most_units) {
  std::vector<LatticeRow> result;
  result.reserve(arc.groups.size() + 1);
  cut(row, budget_ - least_peak(arc));
  result.push_back(std::move(row));
  for (const ArcGroup& group : arc.groups) {
    const std::int64_t units = group.bytes / unit_;
    const auto time_ps = static_cast<double>(group.time_ps);
    const double rest_price = price_of(group.bytes % unit_);
    if (units > 0) {
      result.push_back(after_group(result.back(), units, time_ps, rest_price, most_units));
      work_ += static_cast<std::int64_t>(result.back().ps.size() + result.back().priced.size());
      continue;
    }
    result.push_back(result.back());  // saved for nothing but the price of the remainder
    const double least_ps = std::min(time_ps, rest_price);
    for (double& ps : result.back().priced) ps += least_ps;
  }
  return result;
}

const LatticeRow& Lattice::row(std::uint32_t state) {
  const auto after = std::upper_bound(begin_.begin(), begin_.end() - 1, state);
  const auto block = static_cast<std::size_t>(after - begin_.begin()) - 1;
  if (block != block_) {
    rows_ = fill_block(block, starts_[block]);
    block_ = block;
  }
  return rows_[state - begin_[block]];
}

void Lattice::enter(const Entered& entered) {
  within_ = within(episode_->arcs[entered.arc], units_of(entered.least_bytes), units_of(entered.most_bytes));
}

std::vector<LatticeRow> Lattice::within(const Arc& arc, std::int64_t least_units, std::int64_t most_units) {
  std::int64_t units = 0;
  for (const ArcGroup& group : arc.groups) units += group.bytes / unit_ + 1;
  const LatticeRow& whole = row(arc.from);
  LatticeRow part;
  const auto size = static_cast<std::int64_t>(whole.ps.size());
  if (size > 0) {
    const std::int64_t least = std::min(least_units - units, units_of(budget_ - least_peak(arc)));
    const std::int64_t begin = std::clamp<std::int64_t>(least - whole.first, 0, size - 1);
    const std::int64_t end = std::clamp<std::int64_t>(most_units - whole.first + 1, 0, size);
    part.first = whole.first + begin;
    if (begin > 0) part.known_from = part.first;
    if (begin < end) {
      part.ps.assign(whole.ps.begin() + begin, whole.ps.begin() + end);
      if (!whole.priced.empty()) part.priced.assign(whole.priced.begin() + begin, whole.priced.begin() + end);
    }
  }
  return run_through(arc, std::move(part), most_units);
}

// The unit that loses least by rounding.
void Lattice::choose_unit(const LatticeOptions& options) {
  std::map<std::int64_t, std::int64_t> sizes;  // and how often they occur
  // By state: the most and the least that can be kept.
  std::vector<std::int64_t> most(episode_->state_count, kNoPeak);
  std::vector<std::int64_t> least(episode_->state_count, kNoPath);
  most[0] = least[0] = 0;
  Int128 range = 1;   // of all rows, in bytes
  Int128 passes = 1;  // over them
  for (const Arc& arc : episode_->arcs) {
    if (most[arc.from] == kNoPeak || (*floors_)[arc.to] == kNoPath) continue;
    if (arc.keep_bytes > 0) ++sizes[arc.keep_bytes];
    std::int64_t kept = most[arc.from] + arc.keep_bytes;
    std::int64_t count = 1;
    for (const ArcGroup& group : arc.groups) {
      kept += group.bytes;
      if (group.bytes <= 0) continue;
      ++sizes[group.bytes];
      ++count;
    }
    least[arc.to] = std::min(least[arc.to], least[arc.from] + arc.keep_bytes);
    most[arc.to] = std::max(most[arc.to], std::min(kept, most_bytes(*floors_, budget_, arc.to)));
    passes += static_cast<Int128>(count) * std::max<std::int64_t>(most[arc.to] - least[arc.to], 0);
  }
  Int128 most_in_block = 0;
  for (std::size_t block = 0; block + 1 < begin_.size(); ++block) {
    Int128 in_block = 0;
    for (std::uint32_t state = begin_[block]; state < begin_[block + 1]; ++state) {
      if (most[state] <= least[state]) continue;
      in_block += most[state] - least[state];
      if (state == begin_[block]) range += most[state] - least[state];
    }
    most_in_block = std::max(most_in_block, in_block);
  }
  range += most_in_block;
  const Int128 least_cell = std::max(range / options.max_cells, passes / options.max_work) + 1;
  const auto least_unit = static_cast<std::int64_t>(least_cell);
  unit_ = least_unit;
  const auto loss_of = [&](std::int64_t unit) {
    Int128 loss = 0;
    for (const auto& [size, count] : sizes) loss += static_cast<Int128>(size % unit) * count;
    return loss;
  };
  // Of equal sizes and their parts; and round numbers, for where decided groups have left sizes with odd remainders.
  std::set<std::int64_t> units = {least_unit};
  for (const auto& [size, count] : sizes)
    for (std::int64_t parts = 1; parts <= 16 && size / parts >= least_unit; ++parts)
      if (size % parts == 0) units.insert(size / parts);
  const std::int64_t most_size = sizes.empty() ? 0 : sizes.rbegin()->first;
  for (std::int64_t odd = 1; odd < 16; odd += 2)
    for (std::int64_t unit = odd; unit <= most_size; unit *= 2)
      if (unit >= least_unit) units.insert(unit);
  std::vector<std::pair<std::int64_t, Int128>> losses;
  Int128 least_loss = loss_of(least_unit);
  for (const std::int64_t unit : units)
    least_loss = std::min(least_loss, losses.emplace_back(unit, loss_of(unit)).second);
  // A larger unit that loses hardly more has fewer cells.
  for (const auto& [unit, loss] : losses)
    if (loss <= least_loss + least_loss / 4) unit_ = unit;
}

// What a byte costs less than running again, for half of the bytes of groups that are remainders as a whole.
void Lattice::choose_price() {
  struct Small {
    Int128 price;
    std::int64_t bytes;
  };
  std::vector<Small> groups;
  Int128 all_bytes = 0;
  for (const Arc& arc : episode_->arcs)
    for (const ArcGroup& group : arc.groups) {
      if (group.bytes <= 0 || group.bytes >= unit_ || group.time_ps <= 0) continue;
      groups.push_back({(static_cast<Int128>(group.time_ps) << kPriceBits) / group.bytes, group.bytes});
      all_bytes += group.bytes;
    }
  if (groups.empty()) return;
  std::sort(groups.begin(), groups.end(), [](const Small& a, const Small& b) { return a.price < b.price; });
  Int128 bytes = 0;
  std::size_t i = 0;
  while (2 * (bytes += groups[i].bytes) < all_bytes) ++i;
  // All that is ever added up has to be exact.
  const Int128 most = (static_cast<Int128>(1) << (51 + kPriceBits)) / unit_ / (episode_->arcs.size() + groups.size());
  if (groups[i].price < most) price_ = static_cast<std::int64_t>(groups[i].price);
}

}  // namespace tidemark::planner
