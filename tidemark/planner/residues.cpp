#include "tidemark/planner/residues.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <set>

#include "tidemark/planner/floors.h"
#include "tidemark/planner/ways.h"

namespace tidemark::planner {

namespace {

constexpr std::int64_t kMostCost = std::int64_t{1} << 51;
constexpr int kFreeBits = 10;  // an exchange is free when it costs less than one part in 2^10 of what is exchanged

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

std::int64_t floor_mod(std::int64_t a, std::int64_t b) { return a - floor_div(a, b) * b; }

Int128 scaled(std::int64_t ps) { return static_cast<Int128>(ps) << kPriceBits; }

// The same figures on every processor, in fewer steps where it has wider registers.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
void take_cheaper(const double* again, double again_cost, const double* saved, double saved_cost, double* out,
                  std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double a = again[i] + again_cost;
    const double b = saved[i] + saved_cost;
    out[i] = a < b ? a : b;
  }
}

// An arc of the cheapest ways in parts, or nearly the cheapest.
struct Tie {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::int64_t ps = 0;
  std::vector<std::int64_t> sizes;                            // kept
  std::vector<std::pair<std::int64_t, std::int64_t>> either;  // sizes and times of groups that may as well be saved
};

std::vector<Tie> find_ties(const Bounds& bounds, std::int64_t budget_bytes) {
  const Episode& episode = bounds.episode();
  constexpr int kNearBits = 18;  // by one part in 2^18, or what rounding prices may come to
  const Int128 most = bounds.least() + std::max(bounds.least() >> kNearBits, scaled(budget_bytes >> kPriceBits) + 1);
  std::vector<Tie> ties;
  for (std::uint32_t a = 0; a < episode.arcs.size(); ++a) {
    const Int128 through = bounds.through(a);
    if (through > most) continue;
    const Arc& arc = episode.arcs[a];
    const auto price = static_cast<Int128>(bounds.prices()[arc.to]);
    Tie way{arc.from, arc.to, arc.base_ps, {}, {}};
    if (price != 0 && arc.keep_bytes > 0) way.sizes.push_back(arc.keep_bytes);
    for (const ArcGroup& group : arc.groups) {
      const Int128 worth = price * group.bytes;
      const Int128 more = scaled(group.time_ps) - worth;
      const Int128 off = more < 0 ? -more : more;
      if (through + off <= most && off <= worth >> kFreeBits && price != 0) {
        way.either.emplace_back(group.bytes, group.time_ps);
        way.ps += group.time_ps;
      } else if (more > 0) {
        if (price != 0) way.sizes.push_back(group.bytes);
      } else {
        way.ps += group.time_ps;
      }
    }
    ties.push_back(std::move(way));
  }
  return ties;
}

// In units: most differences are multiples of `differ`; `ps` is what the usual one, `units`, is exchanged for.
struct Swap {
  std::int64_t differ = 0;
  std::int64_t units = 0;
  std::int64_t ps = 0;
};

Swap find_swap(const std::vector<Tie>& ties, std::uint32_t state_count, std::int64_t unit, std::int64_t price) {
  struct Place {
    bool is_there = false;
    std::int64_t units = 0;
    std::int64_t ps = 0;
  };
  std::vector<Place> places(state_count);
  places[0].is_there = true;
  struct Kind {
    std::int64_t count = 0;
    std::int64_t ps = 0;
  };
  std::map<std::int64_t, Kind> kinds;  // by units
  const auto add = [&](std::int64_t units, std::int64_t ps) {
    const Int128 worth = static_cast<Int128>(price) * unit * std::abs(units);
    const Int128 more = scaled(std::abs(ps)) - worth;
    if (units == 0 || (units > 0) != (ps > 0) || (more < 0 ? -more : more) > (worth >> kFreeBits)) return;
    Kind& kind = kinds[std::abs(units)];
    ++kind.count;
    kind.ps = std::abs(ps);
  };
  for (const Tie& way : ties) {
    if (!places[way.from].is_there) continue;
    Place place = places[way.from];
    place.ps += way.ps;
    for (const std::int64_t size : way.sizes) place.units += size / unit;
    for (const auto& [size, ps] : way.either) add(size / unit, ps);
    Place& to = places[way.to];
    if (to.is_there)
      add(place.units - to.units, to.ps - place.ps);
    else
      to = place;
  }
  // What few layers have cannot be had often.
  std::int64_t most = 0;
  for (const auto& [units, kind] : kinds) most = std::max(most, kind.count);
  Swap swap;
  for (const auto& [units, kind] : kinds) {
    if (4 * kind.count < most) continue;
    swap.differ = std::gcd(swap.differ, units);
    if (kind.count != most) continue;
    swap.units = units;
    swap.ps = kind.ps;
  }
  return swap;
}

std::map<std::int64_t, std::int64_t> count_sizes(const Episode& episode, const std::vector<std::int64_t>& floors) {
  std::map<std::int64_t, std::int64_t> sizes;
  for (const Arc& arc : episode.arcs) {
    if (floors[arc.to] == kNoPath || floors[arc.from] == kNoPath) continue;
    if (arc.keep_bytes > 0) ++sizes[arc.keep_bytes];
    for (const ArcGroup& group : arc.groups)
      if (group.bytes > 0) ++sizes[group.bytes];
  }
  return sizes;
}

// Sizes, their parts, and round numbers.
std::set<std::int64_t> unit_candidates(const std::map<std::int64_t, std::int64_t>& sizes) {
  constexpr std::int64_t kMostParts = 16;
  std::set<std::int64_t> units;
  for (const auto& [size, count] : sizes)
    for (std::int64_t parts = 1; parts <= kMostParts; ++parts)
      if (size % parts == 0) units.insert(size / parts);
  const std::int64_t most_size = sizes.empty() ? 0 : sizes.rbegin()->first;
  for (std::int64_t odd = 1; odd < kMostParts; odd += 2)
    for (std::int64_t unit = odd; unit <= most_size; unit *= 2) units.insert(unit);
  return units;
}

}  // namespace

std::optional<Residues> Residues::make(const Episode& episode, const std::vector<std::int64_t>& floors,
                                       std::int64_t budget_bytes, const Bounds& bounds, const ResidueOptions& options) {
  Residues residues(episode, floors, budget_bytes);
  if (!residues.choose_units(bounds, options)) return std::nullopt;
  residues.fill();
  return residues;
}

std::optional<Residues::Units> Residues::choose(const Episode& episode, const std::vector<std::int64_t>& floors,
                                                std::int64_t budget_bytes, const Bounds& bounds,
                                                const ResidueOptions& options) {
  Residues residues(episode, floors, budget_bytes);
  if (!residues.choose_units(bounds, options)) return std::nullopt;
  return Units{residues.unit_, residues.count_, residues.unit_cost_[0], residues.scale_};
}

Residues::Residues(const Episode& episode, const std::vector<std::int64_t>& floors, std::int64_t budget_bytes)
    : episode_(&episode), floors_(&floors), budget_(budget_bytes) {}

// The unit that loses least by rounding; a larger one that loses hardly more has fewer residues.
bool Residues::choose_units(const Bounds& bounds, const ResidueOptions& options) {
  const std::vector<std::int64_t>& prices = bounds.prices();
  if (prices[0] <= 0) return false;
  const std::vector<Tie> ties = find_ties(bounds, budget_);
  const std::map<std::int64_t, std::int64_t> sizes = count_sizes(*episode_, *floors_);
  std::int64_t steps = static_cast<std::int64_t>(episode_->arcs.size());
  for (const Arc& arc : episode_->arcs) steps += static_cast<std::int64_t>(arc.groups.size());
  const std::int64_t most_residues =
      std::min({options.most_residues, options.max_cells / static_cast<std::int64_t>(episode_->state_count),
                options.max_work / std::max<std::int64_t>(steps, 1)});
  struct Choice {
    std::int64_t unit;
    Int128 loss;
    Swap swap;
  };
  std::vector<Choice> choices;
  for (const std::int64_t unit : unit_candidates(sizes)) {
    const Swap swap = find_swap(ties, episode_->state_count, unit, prices[0]);
    if (swap.differ == 0 || swap.differ > most_residues) continue;
    Int128 loss = 0;
    for (const auto& [size, count] : sizes) loss += static_cast<Int128>(size % unit) * count;
    choices.push_back({unit, loss, swap});
  }
  if (choices.empty()) return false;
  Int128 least_loss = choices[0].loss;
  for (const Choice& choice : choices) least_loss = std::min(least_loss, choice.loss);
  Swap best;
  for (const Choice& choice : choices) {
    if (choice.loss > least_loss + least_loss / 4) continue;
    unit_ = choice.unit;
    best = choice.swap;
  }
  count_ = best.differ;

  // Exchanges are free to the last digit when a ps has as many parts as units are exchanged.
  Int128 most_ps = 1;
  for (const Arc& arc : episode_->arcs) {
    Int128 ps = arc.base_ps + static_cast<Int128>(arc.keep_bytes / unit_ + count_) * prices[0] * unit_ / scaled(1);
    for (const ArcGroup& group : arc.groups) ps += group.time_ps;
    most_ps = std::max(most_ps, ps);
  }
  if (most_ps > kMostCost) return false;
  scale_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(kMostCost / most_ps), 1, best.units);
  const auto tie_cost = static_cast<std::int64_t>(static_cast<Int128>(best.ps) * scale_ / best.units);
  unit_cost_.assign(prices.size(), 0);
  for (std::size_t s = prices.size(); s-- > 0;) {
    const auto cost = static_cast<std::int64_t>((static_cast<Int128>(prices[s]) * unit_ * scale_) >> kPriceBits);
    // The price of ties, where it is theirs.
    unit_cost_[s] = std::max(prices[s] == prices[0] ? tie_cost : cost, s + 1 < prices.size() ? unit_cost_[s + 1] : 0);
  }
  return true;
}

bool Residues::leads_on(const Arc& arc) const {
  return (*floors_)[arc.to] != kNoPath && (*floors_)[arc.from] != kNoPath && !rows_[arc.from].is_empty() &&
         most_before(arc, *floors_, budget_) >= 0;
}

std::int64_t Residues::most_units(const Arc& arc) const {
  return floor_div(most_before(arc, *floors_, budget_) - rest_[arc.from], unit_);
}

// Arcs with the same key, from rows with the same costs, have the same rows in them.
Residues::Key Residues::key_of(const Arc& arc) const {
  const ResidueRow& from = rows_[arc.from];
  Key key{from.id, from.unit_cost, unit_cost_[arc.to]};
  if (from.unit_cost != unit_cost_[arc.to]) key.push_back(floor_mod(most_units(arc) - from.first, count_));
  for (const ArcGroup& group : arc.groups) {
    key.push_back(group.bytes / unit_);
    key.push_back(group.time_ps);
  }
  return key;
}

void Residues::fill() {
  Costs start(static_cast<std::size_t>(count_));
  for (std::int64_t i = 0; i < count_; ++i) start[static_cast<std::size_t>(i)] = static_cast<double>(i * unit_cost_[0]);
  rest_.assign(episode_->state_count, kNoPath);
  rest_[0] = 0;
  rows_.resize(episode_->state_count);
  rows_[0] = kept(start);
  rows_[0].unit_cost = unit_cost_[0];
  std::vector<std::vector<std::uint32_t>> into(episode_->state_count);
  for (std::uint32_t state = 0; state < episode_->state_count; ++state) {
    if (state > 0 && !into[state].empty()) {
      rows_[state] = joined(into[state]);
      rows_[state].rest = rest_[state];
    }
    if (rows_[state].is_empty() || state + 1 == episode_->state_count) continue;
    for (std::uint32_t a = episode_->first_arc[state]; a < episode_->first_arc[state + 1]; ++a)
      if (const Arc& arc = episode_->arcs[a]; leads_on(arc)) {
        into[arc.to].push_back(a);
        rest_[arc.to] = std::min(rest_[arc.to], rest_[state] + arc.keep_bytes % unit_);
      }
  }
  const ResidueRow& last = rows_.back();
  bound_ps_ = last.is_empty() ? Convex::kNotEnough : static_cast<std::int64_t>((last.base + scale_ - 1) / scale_);
}

ResidueRow Residues::kept(const Costs& costs) {
  std::uint64_t hash = 0;
  for (const double cost : costs) hash = (hash ^ static_cast<std::uint64_t>(cost)) * 0x9E3779B97F4A7C15u;
  const auto [begin, end] = by_hash_.equal_range(hash);
  auto found = std::find_if(begin, end, [&](const auto& entry) { return costs_[entry.second] == costs; });
  if (found == end) {
    found = by_hash_.emplace(hash, costs_.size());
    costs_.push_back(costs);
  }
  ResidueRow row;
  row.cost = &costs_[found->second];
  row.id = static_cast<std::int64_t>(found->second);
  return row;
}

void Residues::close(Costs& costs, std::int64_t unit_cost) const {
  for (int turn = 0; turn < 2; ++turn) {
    double last = costs.back();
    for (double& cost : costs) last = cost = std::min(cost, last + static_cast<double>(unit_cost));
  }
}

// With the price that holds on the arc. What is kept before is at most what the arc and all after it leave room for: by
// what the price falls, every unit less than that counts.
// `costs` is for what changes.
ResidueRow Residues::entered(const Arc& arc, const ResidueRow& row, Costs& costs) const {
  ResidueRow result = row;
  result.unit_cost = unit_cost_[arc.to];
  const std::int64_t fall = row.unit_cost - result.unit_cost;
  if (fall == 0) return result;
  costs = *row.cost;
  result.cost = &costs;
  const std::int64_t most = most_units(arc);
  result.base -= static_cast<Int128>(fall) * most;
  std::int64_t left = floor_mod(most - row.first, count_);
  for (double& cost : costs) {
    cost += static_cast<double>(fall) * static_cast<double>(left);
    left = left == 0 ? count_ - 1 : left - 1;
  }
  close(costs, result.unit_cost);
  return result;
}

void Residues::take_group(const Costs& in, const ArcGroup& group, std::int64_t unit_cost, Costs& out) {
  const std::int64_t units = group.bytes / unit_;
  out.resize(in.size());
  const std::int64_t shift = units % count_;
  const double again = static_cast<double>(group.time_ps) * static_cast<double>(scale_);
  const double saved = static_cast<double>(units) * static_cast<double>(unit_cost);
  take_cheaper(in.data(), again, in.data() + count_ - shift, saved, out.data(), shift);
  take_cheaper(in.data() + shift, again, in.data(), saved, out.data() + shift, count_ - shift);
  work_ += count_;
}

// Where the way through an arc ends, but for its groups.
ResidueRow Residues::end_of(const Arc& arc) const {
  ResidueRow row = rows_[arc.from];
  const std::int64_t fall = row.unit_cost - unit_cost_[arc.to];
  const std::int64_t units = arc.keep_bytes / unit_;
  row.unit_cost = unit_cost_[arc.to];
  row.first += units;
  row.base += static_cast<Int128>(arc.base_ps) * scale_ + static_cast<Int128>(row.unit_cost) * units;
  if (fall != 0) row.base -= static_cast<Int128>(fall) * most_units(arc);
  return row;
}

// The row of the state that the arcs lead to.
ResidueRow Residues::joined(const std::vector<std::uint32_t>& arcs) {
  // Relative to the cheapest: what is dearer by more than a double holds exactly is cheaper nowhere.
  ResidueRow first = end_of(episode_->arcs[arcs[0]]);
  for (const std::uint32_t a : arcs)
    if (const ResidueRow end = end_of(episode_->arcs[a]); end.base < first.base) first = end;
  Key key;
  for (const std::uint32_t a : arcs) {
    const Arc& arc = episode_->arcs[a];
    const ResidueRow end = end_of(arc);
    const Key part = key_of(arc);
    key.push_back(static_cast<std::int64_t>(part.size()));
    key.insert(key.end(), part.begin(), part.end());
    key.push_back(floor_mod(end.first - first.first, count_));
    key.push_back(static_cast<std::int64_t>(end.base - first.base));
  }
  auto found = joins_.find(key);
  if (found == joins_.end()) found = joins_.emplace(std::move(key), join(arcs, first)).first;
  ResidueRow row = found->second;
  row.base += first.base;
  row.first = first.first;
  row.unit_cost = first.unit_cost;
  return row;
}

// Relative to `first`.
ResidueRow Residues::join(const std::vector<std::uint32_t>& arcs, const ResidueRow& first) {
  Costs& all = scratch_[0];
  Costs& in = scratch_[1];
  Costs& out = scratch_[2];
  all.assign(static_cast<std::size_t>(count_), std::numeric_limits<double>::infinity());
  for (const std::uint32_t a : arcs) {
    const Arc& arc = episode_->arcs[a];
    const Costs* source = entered(arc, rows_[arc.from], in).cost;
    for (const ArcGroup& group : arc.groups) {
      if (group.bytes < unit_) continue;  // saved for nothing
      take_group(*source, group, unit_cost_[arc.to], out);
      std::swap(in, out);
      source = &in;
    }
    const ResidueRow end = end_of(arc);
    const std::int64_t shift = floor_mod(first.first - end.first, count_);
    const auto more = static_cast<double>(static_cast<std::int64_t>(end.base - first.base));
    take_cheaper(all.data(), 0, source->data() + shift, more, all.data(), count_ - shift);
    take_cheaper(all.data() + count_ - shift, 0, source->data(), more, all.data() + count_ - shift, shift);
    work_ += count_;
  }
  const double least = *std::min_element(all.begin(), all.end());  // numbers stay small
  for (double& cost : all) cost -= least;
  ResidueRow row = kept(all);
  row.base = static_cast<std::int64_t>(least);
  return row;
}

std::int64_t Residues::place_of(const ResidueRow& row, std::int64_t units) const {
  return floor_mod(units - row.first, count_);
}

std::int64_t Residues::ps_of(const ResidueRow& row, double row_cost, std::int64_t units) const {
  const Int128 cost = row.base + static_cast<std::int64_t>(row_cost) - static_cast<Int128>(row.unit_cost) * units;
  if (cost <= 0) return 0;
  // A division of 64 bits takes a fraction of one of 128.
  const Int128 up = cost + scale_ - 1;
  if (const auto narrow = static_cast<std::int64_t>(up); narrow == up) return narrow / scale_;
  return static_cast<std::int64_t>(up / scale_);
}

std::int64_t Residues::at(const ResidueRow& row, std::int64_t bytes) const {
  if (row.is_empty()) return Convex::kNotEnough;
  const std::int64_t units = floor_div(bytes - row.rest, unit_);
  return ps_of(row, (*row.cost)[static_cast<std::size_t>(place_of(row, units))], units);
}

std::int64_t Residues::to_group(std::size_t group, std::int64_t bytes) const {
  if (!is_asked_singly_) return at(within_rows_[group], bytes);
  const ResidueRow& row = rows_[entered_];
  const std::int64_t units = floor_div(bytes - row.rest, unit_);
  return ps_of(row, cost_with(group, place_of(row, units)), units);
}

// What take_group() would have made of the row at one place, with the groups before `group`. All numbers are whole, so
// that the order of sums makes no difference.
double Residues::cost_with(std::size_t group, std::int64_t place) const {
  if (group == 0) return (*rows_[entered_].cost)[static_cast<std::size_t>(place)];
  const Turn& turn = turns_[group - 1];
  const double again = cost_with(group - 1, place) + turn.again;
  if (turn.places < 0) return again;
  const std::int64_t before = place - turn.places;
  return std::min(again, cost_with(group - 1, before < 0 ? before + count_ : before) + turn.saved);
}

// Whether the questions about an arc take less time one by one than rows do, which are made for all places at once and
// so take an eighth of the time for each.
bool Residues::is_few(const Arc& arc, std::size_t ways) const {
  constexpr std::size_t kMostGroups = 10;
  constexpr std::int64_t kAtOnce = 8;
  if (arc.groups.size() > kMostGroups || rows_[arc.from].unit_cost != unit_cost_[arc.to]) return false;
  std::int64_t cells = 0;  // of rows
  std::int64_t looks = 0;  // at single places
  std::int64_t one = 1;
  for (const ArcGroup& group : arc.groups)
    if (group.bytes >= unit_) {
      cells += count_;
      looks += one *= 2;
    }
  return looks > 0 && kAtOnce * looks * static_cast<std::int64_t>(ways) < cells;
}

void Residues::ask_singly(const Arc& arc) {
  is_asked_singly_ = true;
  turns_.clear();
  for (const ArcGroup& group : arc.groups) {
    if (group.bytes < unit_) {
      turns_.push_back({-1, 0, 0});  // saved for nothing
      continue;
    }
    const std::int64_t units = group.bytes / unit_;
    turns_.push_back({units % count_, static_cast<double>(group.time_ps) * static_cast<double>(scale_),
                      static_cast<double>(units) * static_cast<double>(unit_cost_[arc.to])});
  }
  work_ += std::int64_t{1} << turns_.size();
}

void Residues::enter(const Entered& entered) {
  constexpr std::int64_t kMostKept = std::int64_t{1} << 22;  // cells
  const Arc& arc = episode_->arcs[entered.arc];
  const ResidueRow& from = rows_[arc.from];
  entered_ = arc.from;
  within_rows_.assign(arc.groups.size() + 1, {});
  is_asked_singly_ = false;
  if (!leads_on(arc)) return;
  if (is_few(arc, entered.ways)) return ask_singly(arc);
  const Key key = key_of(arc);
  auto found = within_.find(key);
  if (found == within_.end()) {
    if (static_cast<std::int64_t>(within_count_) * count_ > kMostKept) {
      within_.clear();
      within_count_ = 0;
    }
    const auto next = [this]() -> Costs& {  // with the memory that it had
      if (within_count_ == within_costs_.size()) within_costs_.emplace_back();
      return within_costs_[within_count_++];
    };
    found = within_.emplace(key, std::vector<ResidueRow>{}).first;
    ResidueRow row = this->entered(arc, from, next());
    row.base -= from.base;
    row.first = 0;
    found->second.push_back(row);
    for (const ArcGroup& group : arc.groups) {
      if (group.bytes >= unit_) {
        Costs& out = next();
        take_group(*row.cost, group, row.unit_cost, out);
        row.cost = &out;
      }
      found->second.push_back(row);
    }
  }
  for (std::size_t j = 0; j < within_rows_.size(); ++j) {
    within_rows_[j] = found->second[j];
    within_rows_[j].base += from.base;
    within_rows_[j].first = from.first;
    within_rows_[j].rest = from.rest;
  }
}

}  // namespace tidemark::planner
