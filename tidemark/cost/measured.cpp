#include "tidemark/cost/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "tidemark/cost/op_time.h"
#include "tidemark/cost/work_text.h"

namespace tidemark::cost {

namespace {

constexpr std::size_t kFewestRows = 3;
constexpr double kPsPerS = 1e12;

// A row says what a launch is when it is modelled to take no longer beside it than the device file has for one, or
// this.
constexpr double kSmallPs = 1e6;
// How many launches it must be modelled to take beside its own, to say how good the model is.
constexpr double kManyLaunches = 4;

// A row of the table that somebody says the work of.
struct Lesson {
  std::string_view name;  // of the op
  Work work;
  std::int64_t time_ps = 0;
};

std::vector<Lesson> lessons_of(const step::Step& step, const step::OpKinds& kinds,
                               const std::vector<std::uint32_t>& rows, const device::Device& device) {
  const auto facts = facts_of(step);
  std::vector<Lesson> lessons;
  const auto add = [&](const device::MeasuredOp& row, const Work& work) {
    const std::string_view key = row.key;
    lessons.push_back({key.substr(0, key.find('(')), work, row.time_ps});
  };
  for (std::size_t i = 0; i < device.measured.size(); ++i) {
    const device::MeasuredOp& row = device.measured[i];
    if (!row.work.empty()) add(row, parse_work_text(row.work, fmt::format("{}[{}]", device.measured_place, i)));
  }
  for (std::size_t kind = 0; kind < rows.size(); ++kind) {
    if (rows[kind] == kNotMeasured || !device.measured[rows[kind]].work.empty()) continue;
    add(device.measured[rows[kind]], work_of(step, step[kinds.first[kind]], facts));
  }
  return lessons;
}

// Measured over modelled, or any other value, and how much that counts.
struct Ratio {
  double value = 1;
  double weight = 0;
};

// The value below which a part of the weight is. Requires: `ratios` ascend, and there is one.
double weighted_quantile(const std::vector<Ratio>& ratios, double part) {
  double all = 0;
  for (const Ratio& ratio : ratios) all += ratio.weight;
  double below = 0;
  for (const Ratio& ratio : ratios) {
    below += ratio.weight;
    if (below >= part * all) return ratio.value;
  }
  return ratios.back().value;
}

struct Middle {
  double value = 1;
  double error = 0;  // half of the distance between the quartiles, as a part of it
  double count = 0;  // how many equal weights would say as much

  // What is left of an error that was open before.
  double error_after(double open) const { return std::max(error, open / std::sqrt(std::max(1.0, count))); }
};

// How many values of equal weight are worth as much as these (Kish).
double worth_of(const std::vector<Ratio>& ratios) {
  double sum = 0;
  double squares = 0;
  for (const Ratio& ratio : ratios) {
    sum += ratio.weight;
    squares += ratio.weight * ratio.weight;
  }
  return squares > 0 ? sum * sum / squares : 0;
}

Middle middle_of(std::vector<Ratio> ratios) {
  std::sort(ratios.begin(), ratios.end(), [](const Ratio& a, const Ratio& b) { return a.value < b.value; });
  const double median = weighted_quantile(ratios, 0.5);
  const double spread = (weighted_quantile(ratios, 0.75) - weighted_quantile(ratios, 0.25)) / 2;
  return {median, median > 0 ? spread / median : 0, worth_of(ratios)};
}

bool is_work(Family family) {
  return family != Family::kFree && family != Family::kUnpriced && family != Family::kCollective;
}

// What a row took, and what the machine says to that beside the launch.
struct Point {
  Family family = Family::kUnpriced;
  double own_ps = 0;
  double took_ps = 0;
};

class Fitter {
 public:
  explicit Fitter(std::vector<Lesson> lessons) : lessons_(std::move(lessons)) {}

  TableFit run(const Machine& machine, const step::Step& step, const step::OpKinds& kinds) {
    TableFit fit{machine, std::vector<NameFit>(step.tables().strings.size())};
    open_error_ = machine.error;
    fit_views(fit.machine);
    find_points(fit.machine);
    fit_launch(fit.machine);
    for (std::size_t family = 0; family < kFamilyCount; ++family) fit_family(fit.machine, family);
    const auto facts = facts_of(step);
    for (const step::OpId first : kinds.first) {
      const step::StringId name = step[first].name;
      fit.names[name.index()] = fit_name(fit.machine, step.text(name), facts[name.index()].family);
    }
    return fit;
  }

 private:
  void fit_views(Machine& machine) const {
    if (machine.kind != device::DeviceKind::kCpu) return;
    std::vector<Ratio> views;
    for (const Lesson& lesson : lessons_)
      if (lesson.work.family == Family::kFree) views.push_back({static_cast<double>(lesson.time_ps), 1});
    if (views.empty()) return;
    const Middle middle = middle_of(std::move(views));
    machine.view_s = middle.value / kPsPerS;
    const auto at = static_cast<std::size_t>(Family::kFree);
    machine.error[at] = middle.error_after(machine.error[at]);
  }

  void find_points(const Machine& machine) {
    for (const Lesson& lesson : lessons_) {
      if (!is_work(lesson.work.family)) continue;
      const Time modelled = op_time(lesson.work, machine);
      const Point point{lesson.work.family, static_cast<double>(modelled.total_ps - modelled.launch_ps),
                        static_cast<double>(lesson.time_ps)};
      points_.push_back(point);
      of_name_[lesson.name].push_back(point);
    }
  }

  void fit_launch(Machine& machine) {
    launch_ps_ = machine.launch_s * kPsPerS;
    std::vector<Ratio> launches;
    for (const Point& point : points_)
      if (point.own_ps <= std::max(launch_ps_, kSmallPs))
        launches.push_back({std::max(0.0, point.took_ps - point.own_ps), 1});
    if (launches.empty()) return;
    launch_ps_ = middle_of(std::move(launches)).value;
    machine.launch_s = launch_ps_ / kPsPerS;
  }

  bool teaches(const Point& point) const { return point.own_ps > 0 && point.own_ps >= kManyLaunches * launch_ps_; }

  std::vector<Ratio> ratios_of(const std::vector<Point>& points, Family family) const {
    std::vector<Ratio> ratios;
    for (const Point& point : points)
      if (point.family == family && teaches(point) && point.took_ps > launch_ps_)
        ratios.push_back({(point.took_ps - launch_ps_) / point.own_ps, point.own_ps});
    return ratios;
  }

  static double most_of(const std::vector<Ratio>& ratios) {
    double most = 0;
    for (const Ratio& ratio : ratios) most = std::max(most, ratio.weight);
    return most;
  }

  void fit_family(Machine& machine, std::size_t family) {
    std::vector<Ratio> ratios = ratios_of(points_, static_cast<Family>(family));
    if (ratios.size() < kFewestRows) return;
    most_own_ps_[family] = most_of(ratios);
    const Middle middle = middle_of(std::move(ratios));
    machine.scale[family] = middle.value;
    machine.error[family] = std::max(machine.constants.error[family], middle.error_after(open_error_[family]));
  }

  NameFit fit_name(const Machine& machine, std::string_view name, Family family) const {
    const auto at = static_cast<std::size_t>(family);
    NameFit fit{1, launch_ps_, machine.error[at], most_own_ps_[at]};
    const auto found = of_name_.find(name);
    if (found == of_name_.end()) return fit;
    std::vector<Ratio> ratios = ratios_of(found->second, family);
    if (!ratios.empty()) {
      fit.most_own_ps = most_of(ratios);
      const Middle middle = middle_of(std::move(ratios));
      fit.scale = middle.value / machine.scale[at];
      fit.error = std::max(machine.constants.error[at], middle.error_after(open_error_[at]));
    }
    std::vector<Ratio> launches;
    for (const Point& point : found->second)
      if (!teaches(point))
        launches.push_back({std::max(0.0, point.took_ps - point.own_ps * fit.scale * machine.scale[at]), 1});
    if (!launches.empty()) fit.launch_ps = middle_of(std::move(launches)).value;
    return fit;
  }

  std::vector<Lesson> lessons_;
  std::vector<Point> points_;
  double launch_ps_ = 0;
  std::array<double, kFamilyCount> most_own_ps_ = {};
  std::array<double, kFamilyCount> open_error_ = {};  // without the table
  std::unordered_map<std::string_view, std::vector<Point>> of_name_;
};

// Numbers that an op multiplies or adds take the same time whatever they are, and some differ in each step: Adam's
// factors have the count of steps in them.
constexpr std::array<std::string_view, 7> kFactors = {"value", "alpha", "beta", "scalar", "other", "weight", "eps"};

// The key without the values of such arguments, where they are floats. None: there are none.
std::optional<std::string> without_factors(std::string_view key) {
  const std::size_t begin = key.find("){");
  if (begin == std::string_view::npos) return std::nullopt;
  std::string result(key.substr(0, begin));
  bool has_factor = false;
  for (std::string_view rest = key.substr(begin + 2); !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find_first_of(",}"));
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const bool is_float = equals != std::string_view::npos &&
                          word.find_first_not_of("0123456789+-.e", equals + 1) == std::string_view::npos &&
                          word.find_first_of(".e", equals + 1) != std::string_view::npos;
    const bool is_factor = is_float && std::find(kFactors.begin(), kFactors.end(), name) != kFactors.end();
    has_factor = has_factor || is_factor;
    result += ',';
    result += is_factor ? name : word;
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
  }
  return has_factor ? std::optional(std::move(result)) : std::nullopt;
}

const device::MeasuredOp* overhead_row(const device::Device& device, std::string_view what, step::PassKind pass) {
  const bool is_named = pass == step::PassKind::kBackward || pass == step::PassKind::kOptimizer;
  const std::string_view name = is_named ? step::kPassKindNames[static_cast<std::size_t>(pass)] : "forward";
  return measured_row(device, fmt::format("{} overhead {}", what, name));
}

Around around_of(const device::MeasuredOp* row) {
  return row == nullptr ? Around{} : Around{row->time_ps, row->spread_ps};
}

}  // namespace

std::vector<std::uint32_t> join_measured(const step::Step& step, const step::OpKinds& kinds,
                                         const device::Device& device) {
  std::vector<std::uint32_t> rows(kinds.first.size(), kNotMeasured);
  if (device.measured.empty()) return rows;
  std::unordered_map<std::string_view, std::uint32_t> by_key;
  std::unordered_map<std::string, std::uint32_t> by_shape;  // of rows with factors
  for (std::uint32_t i = 0; i < device.measured.size(); ++i) {
    by_key.emplace(device.measured[i].key, i);
    if (auto shape = without_factors(device.measured[i].key)) by_shape.emplace(std::move(*shape), i);
  }
  for (std::size_t kind = 0; kind < rows.size(); ++kind) {
    const std::string key = step::op_key(step, kinds.first[kind]);
    if (const auto found = by_key.find(key); found != by_key.end()) {
      rows[kind] = found->second;
    } else if (const auto shape = without_factors(key)) {
      if (const auto alike = by_shape.find(*shape); alike != by_shape.end()) rows[kind] = alike->second;
    }
  }
  return rows;
}

Around op_overhead(const device::Device& device, step::PassKind pass, bool is_view) {
  const device::MeasuredOp* row = is_view ? overhead_row(device, "view", pass) : nullptr;
  return around_of(row != nullptr ? row : overhead_row(device, "op", pass));
}

Around pass_overhead(const device::Device& device, step::PassKind pass) {
  return around_of(overhead_row(device, "pass", pass));
}

Around parameter_overhead(const device::Device& device) {
  return around_of(overhead_row(device, "parameter", step::PassKind::kOptimizer));
}

const device::MeasuredOp* measured_row(const device::Device& device, std::string_view key) {
  for (const device::MeasuredOp& row : device.measured)
    if (row.key == key) return &row;
  return nullptr;
}

TableFit fit_to_table(const Machine& machine, const step::Step& step, const step::OpKinds& kinds,
                      const std::vector<std::uint32_t>& rows, const device::Device& device) {
  return Fitter(lessons_of(step, kinds, rows, device)).run(machine, step, kinds);
}

}  // namespace tidemark::cost
