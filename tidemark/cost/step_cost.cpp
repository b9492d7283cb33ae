#include "tidemark/cost/step_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tidemark/base/checked.h"
#include "tidemark/base/duration.h"
#include "tidemark/base/error.h"
#include "tidemark/cost/collective.h"
#include "tidemark/cost/host_ops.h"
#include "tidemark/cost/measured.h"
#include "tidemark/cost/work.h"

namespace tidemark::cost {

namespace {

using namespace step;

constexpr double kPsPerS = 1e12;
// How many times as much work as any row of a table was modelled to be, for what it says to be a guess.
constexpr double kFarAbove = 8;
constexpr std::size_t kNoPosition = static_cast<std::size_t>(-1);

std::int64_t ps_from_us(double us) { return static_cast<std::int64_t>(std::llround(us * 1e6)); }

// Times come from files too; a sum that does not fit stays at the largest number.
void add_to(std::int64_t& sum, std::int64_t amount) {
  sum = checked_add(sum, amount).value_or(std::numeric_limits<std::int64_t>::max());
}

std::int64_t ps_from_double(double ps) {
  return ps < 9e18 ? std::llround(ps) : std::numeric_limits<std::int64_t>::max();
}

// Adds op times up. The errors of one family go the same way, since one formula makes them; those of different
// families are independent.
class Adder {
 public:
  Adder(double unpriced_factor, double measured_error)
      : unpriced_factor_(unpriced_factor), measured_error_(measured_error) {}

  void add(const Time& time, Family family, std::int64_t bytes) {
    add_to(total_.time_ps, time.total_ps);
    switch (time.source) {
      case TimeSource::kMeasured:
        add_to(total_.measured_ps, time.total_ps);
        measured_ += static_cast<double>(time.total_ps);
        measured_spread_ += static_cast<double>(time.spread_ps);
        break;
      case TimeSource::kModelled:
        add_to(total_.modelled_ps, time.total_ps);
        spread_[static_cast<std::size_t>(family)] += static_cast<double>(time.spread_ps);
        break;
      case TimeSource::kUnpriced:
        ++total_.unpriced_ops;
        add_to(total_.unpriced_bytes, bytes);
        add_to(total_.unpriced_least_ps, time.launch_ps + time.memory_ps);
        break;
      case TimeSource::kFree:
        break;
    }
  }

  // What a pass costs beside its ops, by a table.
  void add_pass(const Around& around) {
    add_to(total_.time_ps, around.time_ps);
    add_to(total_.measured_ps, around.time_ps);
    measured_ += static_cast<double>(around.time_ps);
    measured_spread_ += static_cast<double>(around.spread_ps);
  }

  // What checkpoints cost beside their ops; their errors are their own.
  void add_regions(std::int64_t time_ps, bool is_measured, double error) {
    add_to(total_.time_ps, time_ps);
    add_to(is_measured ? total_.measured_ps : total_.modelled_ps, time_ps);
    region_spread_ += static_cast<double>(time_ps) * error;
  }

  Total finish() {
    const double measured_spread = std::max(measured_spread_, measured_error_ * measured_);
    double square = measured_spread * measured_spread + region_spread_ * region_spread_;
    for (const double spread : spread_) square += spread * spread;
    const double spread = std::sqrt(square);
    const auto time = static_cast<double>(total_.time_ps);
    total_.low_ps = ps_from_double(std::max(0.0, time - spread));
    total_.high_ps = ps_from_double(time + spread + unpriced_factor_ * static_cast<double>(total_.unpriced_least_ps));
    return total_;
  }

 private:
  double unpriced_factor_;
  double measured_error_;
  Total total_;
  std::array<double, kFamilyCount> spread_ = {};
  double measured_ = 0;  // of ops and passes
  double measured_spread_ = 0;
  double region_spread_ = 0;
};

// What the device and the host do in one pass.
struct PassTimes {
  std::int64_t device_ps = 0;
  std::int64_t host_ps = 0;
  std::int64_t unpriced_least_ps = 0;
};

// The ends of max(device, host), each as far off as it may be: the device as far as `total`, with what has no price
// from nothing to `unpriced_factor` times its least; the host, whose speed is assumed, as far as hosts are apart.
Interval overlapped(const PassTimes& pass, const Total& total, const Constants& constants) {
  const double time = std::max(1.0, static_cast<double>(total.time_ps));
  const double open = constants.unpriced_factor * static_cast<double>(total.unpriced_least_ps);
  const auto device = static_cast<double>(pass.device_ps);
  const auto host = static_cast<double>(pass.host_ps);
  const double low = static_cast<double>(total.low_ps) / time;
  const double high = std::max(0.0, static_cast<double>(total.high_ps) - open) / time;
  const double more = constants.unpriced_factor * static_cast<double>(pass.unpriced_least_ps);
  return {ps_from_double(std::max(device * low, host * constants.host_least)),
          ps_from_double(std::max(device * high + more, host * constants.host_most))};
}

void add_to(Interval& sum, const Interval& more) {
  add_to(sum.low_ps, more.low_ps);
  add_to(sum.high_ps, more.high_ps);
}

// Ops without a price, by name.
class UnpricedList {
 public:
  explicit UnpricedList(const Step& step) : position_(step.tables().strings.size(), kNoPosition) {}

  void add(StringId name, std::int64_t bytes) {
    std::size_t& at = position_[name.index()];
    if (at == kNoPosition) {
      at = rows_.size();
      rows_.push_back({name, 0, 0});
    }
    ++rows_[at].count;
    add_to(rows_[at].bytes, bytes);
  }

  std::vector<UnpricedOp> finish() { return std::move(rows_); }

 private:
  std::vector<std::size_t> position_;
  std::vector<UnpricedOp> rows_;
};

Collective collective_named(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("allreduce") || has("all_reduce")) return Collective::kAllReduce;
  if (has("reduce_scatter")) return Collective::kReduceScatter;
  if (has("allgather") || has("all_gather")) return Collective::kAllGather;
  if (has("alltoall") || has("all_to_all")) return Collective::kAllToAll;
  if (has("broadcast") || has("reduce")) return Collective::kBroadcast;
  if (has("gather") || has("scatter")) return Collective::kAllToAll;
  return has("barrier") ? Collective::kBarrier : Collective::kSend;
}

// Whole steps are of one kind of op after another, so each op is priced as it comes.
class Pricer {
 public:
  Pricer(const Step& step, const device::Device& device, const PriceOptions& options)
      : step_(step),
        device_(device),
        options_(options),
        machine_(make_machine(device, options.constants)),
        topology_(topology_of(machine_, options.ranks, options.ranks_per_node)),
        facts_(facts_of(step)),
        recent_(std::size_t{1} << kRecentBits, {Work{}, op_time(Work{}, machine_)}) {}

  StepCost run() {
    const std::size_t count = step_.tables().ops.size();
    cost_.ops.reserve(count);
    cost_.family.reserve(count);
    cost_.bytes.reserve(count);
    if (device_.kind != device::DeviceKind::kCpu) is_host_ = host_ops(step_);
    if (device_.measured.empty()) {
      for (std::size_t i = 0; i < count; ++i) price(i);
    } else {
      price_with_table();
    }
    price_regions();
    cost_.unpriced_factor = options_.constants.unpriced_factor;
    cost_.measured_error = options_.constants.measured_error;
    add_up();
    add_notes();
    return std::move(cost_);
  }

 private:
  // From the table, if it has them all; what it lacks makes the rest no better than modelled.
  void price_regions() {
    const Constants& c = options_.constants;
    cost_.is_region_measured = true;
    const auto price_one = [&](std::string_view key, double modelled_us) {
      const device::MeasuredOp* row = measured_row(device_, key);
      if (row == nullptr) {
        cost_.is_region_measured = false;
        cost_.region_error = std::max(cost_.region_error, c.region_error);
        return ps_from_us(modelled_us);
      }
      if (row->time_ps > 0)
        cost_.region_error =
            std::max(cost_.region_error, static_cast<double>(row->spread_ps) / static_cast<double>(row->time_ps));
      return row->time_ps;
    };
    cost_.region_ps = price_one(kRegionKey, c.region_us);
    cost_.region_save_ps = price_one(kRegionSaveKey, c.region_save_us);
    cost_.region_rng_ps = price_one(kRegionRngKey, c.region_rng_us);
  }

  void price(std::size_t at) {
    const Op& op = step_.tables().ops[at];
    Work work = work_of(step_, op, facts_);
    if (!is_host_.empty() && is_host_[at]) work.family = Family::kFree;
    cost_.family.push_back(work.family);
    cost_.bytes.push_back(work.bytes);
    const auto precision = static_cast<std::size_t>(priced_precision(work));
    if (step_[op.pass].kind != PassKind::kRecompute) add_to(cost_.flops_by_precision[precision], work.flops);
    cost_.ops.push_back(work.family == Family::kCollective ? collective_time(op, work) : time_of(work));
    add_to(cost_.executed_by_precision[precision], cost_.ops.back().flops);
  }

  // Equal layers ask for the same work again and again.
  const Time& time_of(const Work& work) {
    const auto mixed =
        static_cast<std::uint64_t>(work.m * 3 + work.n * 5 + work.k * 7 + work.bytes) * 0x9E3779B97F4A7C15u;
    auto& [known, time] = recent_[mixed >> (64 - kRecentBits)];
    if (!(known == work)) {
      known = work;
      time = op_time(work, machine_);
    }
    return time;
  }

  Time collective_time(const Op& op, const Work& work) const {
    Time time = op_time(work, machine_);
    const double seconds = collective_s(collective_named(step_.text(op.name)), work.bytes, topology_);
    time.memory_ps = std::min(ps_from_double(seconds * kPsPerS), kLongestOpPs);
    time.total_ps = time.launch_ps + time.memory_ps;
    time.spread_ps = static_cast<std::int64_t>(static_cast<double>(time.total_ps) *
                                               options_.constants.error[static_cast<std::size_t>(Family::kCollective)]);
    return time;
  }

  void price_with_table() {
    const OpKinds kinds = op_kinds(step_);
    const auto rows = join_measured(step_, kinds, device_);
    const TableFit fit = fit_to_table(machine_, step_, kinds, rows, device_);
    machine_ = fit.machine;
    std::fill(recent_.begin(), recent_.end(), std::pair{Work{}, op_time(Work{}, machine_)});
    const bool is_own_host = device_.kind == device::DeviceKind::kCpu;
    std::array<std::array<Around, 2>, kPassKindNames.size()> overheads = {};  // of ops, of views
    for (std::size_t kind = 0; is_own_host && kind < overheads.size(); ++kind)
      for (const bool is_view : {false, true})
        overheads[kind][is_view] = op_overhead(device_, static_cast<PassKind>(kind), is_view);
    for (std::size_t i = 0; i < kinds.of_op.size(); ++i) {
      const Op& op = step_.tables().ops[i];
      price(i);
      const std::uint32_t row = rows[kinds.of_op[i]];
      Time& time = cost_.ops.back();
      // A view is timed on the host, also where it is not the host's time that counts.
      const bool is_view = time.source == TimeSource::kFree;
      if (is_view && !is_own_host) continue;
      const Around& around = overheads[static_cast<std::size_t>(step_[op.pass].kind)][is_view];
      if (row == kNotMeasured) {
        fit_time(time, fit.names[op.name.index()], around);
        continue;
      }
      time.total_ps = device_.measured[row].time_ps + around.time_ps;
      time.spread_ps = device_.measured[row].spread_ps + around.spread_ps;
      time.launch_ps = std::min(time.launch_ps, time.total_ps);
      time.source = TimeSource::kMeasured;
    }
  }

  // An op that the table does not have, by what it says about others.
  void fit_time(Time& time, const NameFit& fit, const Around& around) const {
    if (time.source == TimeSource::kUnpriced) return;
    if (time.source == TimeSource::kFree) {
      const std::int64_t view_ps = ps_from_double(machine_.view_s * kPsPerS) + around.time_ps;
      if (view_ps == 0) return;
      time.launch_ps = time.total_ps = view_ps;
      time.spread_ps = ps_from_double(static_cast<double>(view_ps - around.time_ps) *
                                      machine_.error[static_cast<std::size_t>(Family::kFree)]) +
                       around.spread_ps;
    } else {
      const auto scaled = [&](std::int64_t ps) {
        return std::min(ps_from_double(static_cast<double>(ps) * fit.scale), kLongestOpPs);
      };
      const auto own_ps = static_cast<double>(time.total_ps - time.launch_ps);
      const bool is_far =
          fit.most_own_ps > 0 &&
          own_ps / machine_.scale[static_cast<std::size_t>(cost_.family.back())] > kFarAbove * fit.most_own_ps;
      const double error = is_far ? std::max(fit.error, options_.constants.guess_error) : fit.error;
      time.compute_ps = scaled(time.compute_ps);
      time.memory_ps = scaled(time.memory_ps);
      time.total_ps = ps_from_double(fit.launch_ps) + scaled(time.total_ps - time.launch_ps) + around.time_ps;
      time.launch_ps = ps_from_double(fit.launch_ps) + around.time_ps;
      time.spread_ps = ps_from_double(static_cast<double>(time.total_ps - around.time_ps) * error) + around.spread_ps;
    }
    time.source = TimeSource::kModelled;
  }

  void add_up() {
    Adder all(cost_.unpriced_factor, cost_.measured_error);
    std::vector<Adder> passes(kPassKindNames.size(), all);
    std::vector<PassTimes> both(step_.tables().passes.size());
    UnpricedList unpriced(step_);
    for (std::size_t i = 0; i < cost_.ops.size(); ++i) {
      const Op& op = step_.tables().ops[i];
      const Time& time = cost_.ops[i];
      all.add(time, cost_.family[i], cost_.bytes[i]);
      const auto kind = static_cast<std::size_t>(step_[op.pass].kind);
      passes[kind].add(time, cost_.family[i], cost_.bytes[i]);
      PassTimes& pass = both[op.pass.index()];
      add_to(pass.device_ps, time.total_ps);
      add_to(pass.host_ps, time.host_ps);
      if (time.source != TimeSource::kUnpriced) continue;
      add_to(pass.unpriced_least_ps, time.launch_ps);
      add_to(pass.unpriced_least_ps, time.memory_ps);
      unpriced.add(op.name, cost_.bytes[i]);
    }
    add_pass_overheads(both, all, passes);
    add_recorded_regions(both, all, passes);
    cost_.all = all.finish();
    cost_.unpriced = unpriced.finish();
    for (std::size_t kind = 0; kind < passes.size(); ++kind) cost_.passes[kind] = passes[kind].finish();
    for (std::size_t pass = 0; pass < both.size(); ++pass) {
      const auto kind = static_cast<std::size_t>(step_.tables().passes[pass].kind);
      const std::int64_t slower = std::max(both[pass].device_ps, both[pass].host_ps);
      add_to(cost_.pass_ps[kind], slower);
      add_to(cost_.pass_interval[kind], overlapped(both[pass], cost_.passes[kind], options_.constants));
      add_to(cost_.step_ps, slower);
      add_to(cost_.step, overlapped(both[pass], cost_.all, options_.constants));
      add_to(cost_.host_ps, both[pass].host_ps);
    }
    check_length();
  }

  // What begins and ends a pass, where host and device are one. A loss is part of the forward that it ends.
  void add_pass_overheads(std::vector<PassTimes>& both, Adder& all, std::vector<Adder>& passes) const {
    if (device_.kind != device::DeviceKind::kCpu || device_.measured.empty()) return;
    const std::vector<double> parameters = parameters_by_pass();
    for (std::size_t i = 0; i < both.size(); ++i) {
      const PassKind kind = step_.tables().passes[i].kind;
      if (kind == PassKind::kLoss || kind == PassKind::kRecompute || both[i].device_ps == 0) continue;
      Around around = pass_overhead(device_, kind);
      if (kind == PassKind::kOptimizer) {
        const Around each = parameter_overhead(device_);
        add_to(around.time_ps, ps_from_double(parameters[i] * static_cast<double>(each.time_ps)));
        add_to(around.spread_ps, ps_from_double(parameters[i] * static_cast<double>(each.spread_ps)));
      }
      add_to(both[i].device_ps, around.time_ps);
      all.add_pass(around);
      passes[static_cast<std::size_t>(kind)].add_pass(around);
    }
  }

  // How many parameters the ops of each pass touch.
  std::vector<double> parameters_by_pass() const {
    const StepTables& t = step_.tables();
    std::vector<double> counts(t.passes.size(), 0);
    std::vector<PassId> last(t.storages.size());  // that touched it; ops of a pass follow each other
    for (const Op& op : t.ops) {
      for (const TensorId input : step_.inputs(op)) {
        const StorageId storage = step_[input].storage;
        if (step_[storage].role != Role::kParameter || last[storage.index()] == op.pass) continue;
        last[storage.index()] = op.pass;
        counts[op.pass.index()] += 1;
      }
    }
    return counts;
  }

  // Checkpoints of the model's own, which the step was recorded with, each where its recompute begins: the host's time,
  // and on a CPU everybody's. What autograd saves in them is the checkpoint's own business, and not recorded.
  void add_recorded_regions(std::vector<PassTimes>& both, Adder& all, std::vector<Adder>& passes) const {
    const StepTables& t = step_.tables();
    const bool is_own_host = device_.kind == device::DeviceKind::kCpu;
    for (const Event& event : t.events) {
      if (event.kind != EventKind::kPhase || t.passes[event.id].kind != PassKind::kRecompute) continue;
      PassTimes& pass = both[event.id];
      const std::int64_t region_ps = cost_.region_ps + cost_.region_rng_ps;
      add_to(is_own_host ? pass.device_ps : pass.host_ps, region_ps);
      if (!is_own_host) continue;
      all.add_regions(region_ps, cost_.is_region_measured, cost_.region_error);
      passes[static_cast<std::size_t>(PassKind::kRecompute)].add_regions(region_ps, cost_.is_region_measured,
                                                                         cost_.region_error);
    }
  }

  void add_notes() {
    const auto collectives = std::count(cost_.family.begin(), cost_.family.end(), Family::kCollective);
    if (collectives > 0 && options_.ranks == 1)
      cost_.notes.push_back(
          fmt::format("{} collective{} priced as on one device, where nothing is sent: say how many "
                      "ranks take part",
                      collectives, collectives == 1 ? " is" : "s are"));
    if (collectives > 0 && options_.ranks > 1) add_link_note();
    for (std::size_t i = 0; i < cost_.flops_by_precision.size(); ++i) {
      // Float32 is rounded to tf32 where there is such a thing.
      if (cost_.flops_by_precision[i] == 0 || device_.peak_flops[i] ||
          static_cast<device::Precision>(i) == device::Precision::kTf32)
        continue;
      const bool is_float64 = static_cast<device::Precision>(i) == device::Precision::kFloat64;
      cost_.notes.push_back(fmt::format("products in {} are priced at {} of float32: the device has no figure for them",
                                        device::kPrecisionNames[i], is_float64 ? "half of the rate" : "the rate"));
    }
  }

  // Which figures of the links that the ranks use are nobody's measurement or data sheet.
  void add_link_note() {
    std::vector<std::string> assumed;
    const auto look_at = [&](const device::Link& link) {
      const auto is_assumed = [&](const device::Figure& figure) {
        return device_.source_text(figure.source).starts_with("assumed");
      };
      if (is_assumed(link.bytes_per_s)) assumed.push_back(fmt::format("the rate of {}", link.kind));
      if (is_assumed(link.latency_ns)) assumed.push_back(fmt::format("the latency of {}", link.kind));
    };
    const bool has_nodes = topology_.ranks > topology_.ranks_per_node;
    if (topology_.ranks_per_node > 1) look_at(device_.link);
    if (has_nodes && device_.network) look_at(*device_.network);
    if (assumed.empty()) return;
    cost_.notes.push_back(fmt::format("collectives are priced for {} ranks{}; assumed: {}", topology_.ranks,
                                      has_nodes ? fmt::format(", {} in a node", topology_.ranks_per_node) : "",
                                      fmt::join(assumed, ", ")));
  }

  void check_length() const {
    if (std::max(cost_.step_ps, cost_.all.unpriced_least_ps) <= kLongestStepPs) return;
    throw Error({.kind = ErrorKind::kInput,
                 .place = fmt::format("device {}", device_.name),
                 .problem = "the times of the step's ops cannot be added up",
                 .expected = fmt::format("at most {} in all", format_duration(kLongestStepPs)),
                 .got = cost_.step_ps < std::numeric_limits<std::int64_t>::max() ? format_duration(cost_.step_ps)
                                                                                 : "more than picoseconds can count",
                 .remedy = "check the units of the device file and the sizes in the step"});
  }

  const Step& step_;
  const device::Device& device_;
  const PriceOptions& options_;
  Machine machine_;
  Topology topology_;
  std::vector<OpFact> facts_;
  std::vector<bool> is_host_;  // by op; empty on a CPU, where host and device are one
  StepCost cost_;
  static constexpr int kRecentBits = 9;
  std::vector<std::pair<Work, Time>> recent_;
};

double utilisation(const FlopsByPrecision& flops, std::int64_t step_ps, const device::Device& device) {
  if (step_ps <= 0) return 0;
  double seconds = 0;
  for (std::size_t i = 0; i < flops.size(); ++i) {
    // What the device does not have is priced at the rate of float32.
    const auto precision = static_cast<device::Precision>(i);
    const bool is_there =
        precision == device::Precision::kTf32 ? device.rounds_convolutions() : device.peak(precision).has_value();
    const auto& peak = device.product_peak(is_there ? precision : device::Precision::kFloat32);
    seconds += static_cast<double>(flops[i]) / static_cast<double>(peak->value);
  }
  return seconds * kPsPerS / static_cast<double>(step_ps);
}

}  // namespace

StepCost price_step(const Step& step, const device::Device& device, const PriceOptions& options) {
  return Pricer(step, device, options).run();
}

double model_flops_utilisation(const StepCost& cost, const device::Device& device) {
  return utilisation(cost.flops_by_precision, cost.step_ps, device);
}

double hardware_flops_utilisation(const StepCost& cost, const device::Device& device) {
  return utilisation(cost.executed_by_precision, cost.step_ps, device);
}

Total total_of(const StepCost& cost, std::span<const OpId> ops, const RegionCounts& regions) {
  Adder adder(cost.unpriced_factor, cost.measured_error);
  adder.add_regions(regions.regions * cost.region_ps + regions.saves * cost.region_save_ps +
                        regions.random_states * cost.region_rng_ps,
                    cost.is_region_measured, cost.region_error);
  for (const OpId op : ops) adder.add(cost.ops[op.index()], cost.family[op.index()], cost.bytes[op.index()]);
  return adder.finish();
}

std::vector<UnpricedOp> unpriced_of(const Step& step, const StepCost& cost, std::span<const OpId> ops) {
  UnpricedList list(step);
  for (const OpId op : ops)
    if (cost.ops[op.index()].source == TimeSource::kUnpriced) list.add(step[op].name, cost.bytes[op.index()]);
  return list.finish();
}

}  // namespace tidemark::cost
