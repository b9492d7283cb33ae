#include "scores.h"

#include <algorithm>
#include <cmath>

#include "tidemark/base/hash.h"
#include "tidemark/cost/op_time.h"

namespace tidemark::accuracy {

namespace {

constexpr double kSPerPs = 1e-12;

double alone_s(const cost::Work& work, const cost::Machine& machine) {
  return static_cast<double>(cost::isolated_ps(cost::op_time(work, machine))) * kSPerPs;
}

double roofline_s(const cost::Work& work, const device::Device& device) {
  return static_cast<double>(cost::plain_roofline_ps(work, device)) * kSPerPs;
}

std::string kind_of(const OpRow& row) { return row.work.family == cost::Family::kStream ? "pointwise" : row.op; }

double error_percent(double predicted, double measured) { return 100 * std::abs(predicted / measured - 1); }

struct Predicted {
  double measured = 0;
  double model = 0;
  double roofline = 0;
};

// A fixed sequence, so that every run takes the same pairs.
class Sequence {
 public:
  std::size_t below(std::size_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>((state_ >> 33) % n);
  }

 private:
  std::uint64_t state_ = 1;
};

Score ranking_of(const std::vector<Predicted>& rows) {
  constexpr std::size_t kTries = 200'000;
  Sequence sequence;
  double pairs = 0, model = 0, roofline = 0;
  for (std::size_t i = 0; i < kTries; ++i) {
    const Predicted& a = rows[sequence.below(rows.size())];
    const Predicted& b = rows[sequence.below(rows.size())];
    const double ratio = b.measured / a.measured;
    if (ratio < 1.2 || ratio > 2) continue;
    pairs += 1;
    model += b.model > a.model ? 1 : 0;
    roofline += b.roofline > a.roofline ? 1 : 0;
  }
  return pairs == 0 ? Score{100, 100} : Score{100 * model / pairs, 100 * roofline / pairs};
}

}  // namespace

std::map<std::pair<std::string, std::string>, Scores> op_scores(const OpTimes& times,
                                                                const std::map<std::string, cost::Constants>& without) {
  std::map<std::pair<std::string, std::string>, Scores> scores;
  std::map<std::pair<std::string, std::string>, std::map<std::string, double>> counts;
  for (const auto& [gpu, rows] : times.by_gpu) {
    const device::Device device = device_of(gpu);
    const cost::Machine machine = cost::make_machine(device, without.at(gpu));
    for (const OpRow& row : rows) {
      const std::pair key{kind_of(row), row.part};
      Score& score = scores[key][gpu];
      score.model += error_percent(alone_s(row.work, machine), row.seconds);
      score.roofline += error_percent(roofline_s(row.work, device), row.seconds);
      counts[key][gpu] += 1;
    }
  }
  for (auto& [key, by_gpu] : scores)
    for (auto& [gpu, score] : by_gpu) {
      score.model /= counts[key][gpu];
      score.roofline /= counts[key][gpu];
    }
  return scores;
}

std::map<std::string, Scores> rankings(const OpTimes& times, const std::map<std::string, cost::Constants>& without) {
  std::map<std::string, Scores> result;
  for (const auto& [gpu, rows] : times.by_gpu) {
    const device::Device device = device_of(gpu);
    const cost::Machine machine = cost::make_machine(device, without.at(gpu));
    std::map<std::string, std::vector<Predicted>> by_op;
    for (const OpRow& row : rows)
      by_op[row.op].push_back({row.seconds, alone_s(row.work, machine), roofline_s(row.work, device)});
    for (const auto& [op, predicted] : by_op) result[op][gpu] = ranking_of(predicted);
  }
  return result;
}

std::vector<StepScore> step_scores(const OpTimes& times, const std::map<std::string, cost::Constants>& without) {
  std::vector<StepScore> scores;
  for (const StepRow& step : times.steps) {
    const device::Device device = device_of(step.gpu);
    const cost::Machine machine = cost::make_machine(device, without.at(step.gpu));
    std::map<std::string, std::pair<double, double>> phases;  // device, host
    StepScore score{&step, 0, 0};
    for (const NodeCount& node : step.ops) {
      const cost::Time time = cost::op_time(node.work, machine);
      const auto count = static_cast<double>(node.count);
      phases[node.phase].first += count * static_cast<double>(time.total_ps) * kSPerPs;
      phases[node.phase].second += count * static_cast<double>(time.host_ps) * kSPerPs;
      score.roofline_s += count * roofline_s(node.work, device);
    }
    for (const auto& [phase, both] : phases) score.model_s += std::max(both.first, both.second);
    scores.push_back(score);
  }
  return scores;
}

// The table gives times of the kernel alone, so the device's part of a launch is in it and the host's is not.
Score tensor_core_score(const OpTimes& times, const cost::Constants& constants) {
  const device::Device device = device_of("H100");
  const cost::Machine machine = cost::make_machine(device, constants);
  Score score;
  for (const OpRow& row : times.tensor_core) {
    const cost::Time time = cost::op_time(row.work, machine);
    const double kernel_s = static_cast<double>(time.total_ps - time.launch_ps) * kSPerPs + constants.kernel_us * 1e-6;
    score.model += error_percent(kernel_s, row.seconds);
    score.roofline += error_percent(roofline_s(row.work, device), row.seconds);
  }
  const auto count = static_cast<double>(times.tensor_core.size());
  return {score.model / count, score.roofline / count};
}

double mean_of(const Scores& scores, double Score::*field) {
  double sum = 0;
  for (const auto& [gpu, score] : scores) sum += score.*field;
  return sum / static_cast<double>(scores.size());
}

double worst_of(const Scores& scores, double Score::*field) {
  double worst = 0;
  for (const auto& [gpu, score] : scores) worst = std::max(worst, score.*field);
  return worst;
}

}  // namespace tidemark::accuracy
