#include "tidemark/cost/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

// The part of a launch that an op must be modelled to take beside it, for its row to say how good the model is.
constexpr double kLeastPart = 0.1;

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

// Measured over modelled, and how much that counts.
struct Ratio {
  double value = 1;
  double weight = 0;
};

// Half of the weight is at or below it.
double weighted_median(std::vector<Ratio> ratios) {
  std::sort(ratios.begin(), ratios.end(), [](const Ratio& a, const Ratio& b) { return a.value < b.value; });
  double all = 0;
  for (const Ratio& ratio : ratios) all += ratio.weight;
  double below = 0;
  for (const Ratio& ratio : ratios) {
    below += ratio.weight;
    if (2 * below >= all) return ratio.value;
  }
  return ratios.back().value;
}

bool is_work(Family family) {
  return family != Family::kFree && family != Family::kUnpriced && family != Family::kCollective;
}

class Fitter {
 public:
  explicit Fitter(std::vector<Lesson> lessons) : lessons_(std::move(lessons)) {}

  TableFit run(const Machine& machine, const step::Step& step, const step::OpKinds& kinds) {
    TableFit fit{machine, std::vector<double>(step.tables().strings.size(), 1)};
    fit_views(fit.machine);
    if (!fit_launch(fit.machine)) return fit;
    find_ratios(fit.machine);
    for (std::size_t family = 0; family < kFamilyCount; ++family)
      if (of_family_[family].size() >= kFewestRows) fit.machine.scale[family] = weighted_median(of_family_[family]);
    const auto facts = facts_of(step);
    for (const step::OpId first : kinds.first) {
      const step::StringId name = step[first].name;
      const auto found = of_name_.find(step.text(name));
      if (found == of_name_.end()) continue;
      const double family_scale = fit.machine.scale[static_cast<std::size_t>(facts[name.index()].family)];
      fit.name_scale[name.index()] = weighted_median(found->second) / family_scale;
    }
    return fit;
  }

 private:
  void fit_views(Machine& machine) const {
    if (machine.kind != device::DeviceKind::kCpu) return;
    std::vector<Ratio> views;
    for (const Lesson& lesson : lessons_)
      if (lesson.work.family == Family::kFree) views.push_back({static_cast<double>(lesson.time_ps), 1});
    if (!views.empty()) machine.view_s = weighted_median(std::move(views)) / kPsPerS;
  }

  bool fit_launch(Machine& machine) {
    std::optional<std::int64_t> least;
    for (const Lesson& lesson : lessons_)
      if (is_work(lesson.work.family)) least = std::min(least.value_or(lesson.time_ps), lesson.time_ps);
    if (!least) return false;
    least_ps_ = *least;
    machine.launch_s = static_cast<double>(least_ps_) / kPsPerS;
    return true;
  }

  void find_ratios(const Machine& machine) {
    for (const Lesson& lesson : lessons_) {
      if (!is_work(lesson.work.family)) continue;
      const Time modelled = op_time(lesson.work, machine);
      const auto own = static_cast<double>(modelled.total_ps - modelled.launch_ps);
      const auto took = static_cast<double>(lesson.time_ps - least_ps_);
      if (own <= 0 || took <= 0 || own < kLeastPart * static_cast<double>(least_ps_)) continue;
      const Ratio ratio{took / own, own};
      of_family_[static_cast<std::size_t>(lesson.work.family)].push_back(ratio);
      of_name_[lesson.name].push_back(ratio);
    }
  }

  std::vector<Lesson> lessons_;
  std::int64_t least_ps_ = 0;
  std::array<std::vector<Ratio>, kFamilyCount> of_family_;
  std::unordered_map<std::string_view, std::vector<Ratio>> of_name_;
};

}  // namespace

std::vector<std::uint32_t> join_measured(const step::Step& step, const step::OpKinds& kinds,
                                         const device::Device& device) {
  std::vector<std::uint32_t> rows(kinds.first.size(), kNotMeasured);
  if (device.measured.empty()) return rows;
  std::unordered_map<std::string_view, std::uint32_t> by_key;
  for (std::uint32_t i = 0; i < device.measured.size(); ++i) by_key.emplace(device.measured[i].key, i);
  for (std::size_t kind = 0; kind < rows.size(); ++kind) {
    const std::string key = step::op_key(step, kinds.first[kind]);
    const auto found = by_key.find(key);
    if (found != by_key.end()) rows[kind] = found->second;
  }
  return rows;
}

std::int64_t overhead_ps(const device::Device& device, step::PassKind pass, bool is_view) {
  std::string_view name = "forward";
  if (pass == step::PassKind::kBackward || pass == step::PassKind::kOptimizer)
    name = step::kPassKindNames[static_cast<std::size_t>(pass)];
  const auto of = [&](std::string_view what) { return measured_ps(device, fmt::format("{} overhead {}", what, name)); };
  const std::optional<std::int64_t> view_ps = is_view ? of("view") : std::nullopt;
  return view_ps ? *view_ps : of("op").value_or(0);
}

const device::MeasuredOp* measured_row(const device::Device& device, std::string_view key) {
  for (const device::MeasuredOp& row : device.measured)
    if (row.key == key) return &row;
  return nullptr;
}

std::optional<std::int64_t> measured_ps(const device::Device& device, std::string_view key) {
  const device::MeasuredOp* row = measured_row(device, key);
  return row == nullptr ? std::nullopt : std::optional(row->time_ps);
}

TableFit fit_to_table(const Machine& machine, const step::Step& step, const step::OpKinds& kinds,
                      const std::vector<std::uint32_t>& rows, const device::Device& device) {
  return Fitter(lessons_of(step, kinds, rows, device)).run(machine, step, kinds);
}

}  // namespace tidemark::cost
