#include "fit.h"

#include <cmath>
#include <map>

#include "tidemark/cost/op_time.h"

namespace tidemark::accuracy {

namespace {

constexpr std::size_t kRowsPerCell = 160;
constexpr double kGridWeight = 0.25;

template <std::size_t kFamily>
double* host(cost::Constants& c) {
  return &c.host_us[kFamily];
}

// One GPU, op and part.
struct Cell {
  std::string gpu;
  double weight = 1;
  std::vector<const OpRow*> rows;
};

std::string kind_of(const OpRow& row) { return row.work.family == cost::Family::kStream ? "pointwise" : row.op; }

// P4's random shapes are left out: the board slowed down the longer the campaign ran (data/op_times/README.md).
std::vector<Cell> cells_of(const OpTimes& times, const std::vector<std::string>& gpus) {
  std::vector<Cell> cells;
  for (const std::string& gpu : gpus) {
    std::map<std::pair<std::string, std::string>, std::vector<const OpRow*>> all;
    for (const OpRow& row : times.by_gpu.at(gpu))
      if (row.op != "conv2d" && !(gpu == "P4" && row.part == "grid")) all[{kind_of(row), row.part}].push_back(&row);
    for (auto& [key, rows] : all) {
      Cell cell{gpu, key.second == "models" ? 1 : kGridWeight, {}};
      const std::size_t step = std::max<std::size_t>(1, rows.size() / kRowsPerCell);
      for (std::size_t i = 0; i < rows.size(); i += step) cell.rows.push_back(rows[i]);
      cells.push_back(std::move(cell));
    }
  }
  return cells;
}

double loss_of(const std::vector<Cell>& cells, const std::map<std::string, device::Device>& devices,
               const cost::Constants& constants) {
  std::map<std::string, cost::Machine> machines;
  for (const auto& [gpu, device] : devices) machines[gpu] = cost::make_machine(device, constants);
  double sum = 0;
  double weight = 0;
  for (const Cell& cell : cells) {
    const cost::Machine& machine = machines.at(cell.gpu);
    double errors = 0;
    for (const OpRow* row : cell.rows)
      errors += std::abs(
          std::log(static_cast<double>(cost::isolated_ps(cost::op_time(row->work, machine))) * 1e-12 / row->seconds));
    sum += cell.weight * errors / static_cast<double>(cell.rows.size());
    weight += cell.weight;
  }
  return sum / weight;
}

std::map<std::string, device::Device> devices_of(const std::vector<std::string>& gpus) {
  std::map<std::string, device::Device> devices;
  for (const std::string& gpu : gpus) devices.emplace(gpu, device_of(gpu));
  return devices;
}

}  // namespace

const std::vector<Knob>& knobs() {
  using C = cost::Constants;
  static const std::vector<Knob> kKnobs = {
      {"stream_hbm", [](C& c) { return &c.stream_hbm; }},
      {"stream_low", [](C& c) { return &c.stream_low; }},
      {"overlap_tiles", [](C& c) { return &c.overlap_tiles; }},
      {"tile_half_intensity", [](C& c) { return &c.tile_half_intensity; }},
      {"long_rows", [](C& c) { return &c.long_rows; }},
      {"long_rows_pascal", [](C& c) { return &c.long_rows_pascal; }},
      {"cache_all", [](C& c) { return &c.cache_all; }},
      {"cache_none", [](C& c) { return &c.cache_none; }},
      {"host_us matmul", host<static_cast<std::size_t>(cost::Family::kMatmul)>},
      {"host_us batched", host<static_cast<std::size_t>(cost::Family::kBatched)>},
      {"host_us softmax", host<static_cast<std::size_t>(cost::Family::kSoftmax)>},
      {"host_us norm", host<static_cast<std::size_t>(cost::Family::kNorm)>},
      {"host_us stream", host<static_cast<std::size_t>(cost::Family::kStream)>},
  };
  return kKnobs;
}

double loss(const OpTimes& times, const std::vector<std::string>& gpus, const cost::Constants& constants) {
  return loss_of(cells_of(times, gpus), devices_of(gpus), constants);
}

cost::Constants fit(const OpTimes& times, const std::vector<std::string>& gpus, const cost::Constants& start) {
  const auto cells = cells_of(times, gpus);
  const auto devices = devices_of(gpus);
  cost::Constants best = start;
  double least = loss_of(cells, devices, best);
  for (double factor : {1.5, 1.2, 1.08, 1.02}) {
    for (int sweep = 0; sweep < 10; ++sweep) {
      const double before = least;
      for (const Knob& knob : knobs())
        for (const double by : {factor, 1 / factor}) {
          cost::Constants tried = best;
          *knob.at(tried) *= by;
          const double value = loss_of(cells, devices, tried);
          if (value < least) {
            least = value;
            best = tried;
          }
        }
      if (before - least < 1e-5) break;
    }
  }
  return best;
}

cost::Constants plain_start() {
  cost::Constants c;
  c.stream_hbm = 0.8;
  c.stream_low = 0.8;
  c.overlap_tiles = 0.5;
  c.tile_half_intensity = 5;
  c.long_rows = 10000;
  c.long_rows_pascal = 10000;
  c.cache_all = 0.5;
  c.cache_none = 1;
  for (double& us : c.host_us) us = 40;
  return c;
}

std::map<std::string, cost::Constants> fit_without_each(const OpTimes& times) {
  std::map<std::string, cost::Constants> without;
  for (const std::string& gpu : kGpus) {
    std::vector<std::string> others;
    for (const std::string& other : kGpus)
      if (other != gpu) others.push_back(other);
    without[gpu] = fit(times, others, plain_start());
  }
  return without;
}

}  // namespace tidemark::accuracy
