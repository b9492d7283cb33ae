#include "tidemark/cost/products.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <span>

namespace tidemark::cost {

namespace {

double overlapped(double compute, double memory, double overlap) {
  return std::max(compute, memory) + overlap * std::min(compute, memory);
}

struct Tile {
  std::int64_t m;
  std::int64_t n;
};

// The tiles that cuBLAS 12.1 has for single float32 products; it also splits the sum (kSplits).
constexpr std::array<Tile, 9> kSingle = {
    {{128, 128}, {128, 64}, {128, 32}, {64, 128}, {64, 64}, {64, 32}, {32, 128}, {32, 64}, {32, 32}}};
constexpr std::array<std::int64_t, 4> kSplits = {1, 2, 4, 8};
constexpr std::array<std::int64_t, 1> kWhole = {1};

// The tiles of its batched kernels, read off the names of the kernels that ran on each generation.
constexpr std::array<Tile, 1> kBatchedPascal = {{{64, 128}}};
constexpr std::array<Tile, 2> kBatchedVolta = {{{128, 32}, {64, 64}}};
constexpr std::array<Tile, 4> kBatchedTuring = {{{128, 128}, {128, 64}, {64, 128}, {64, 64}}};
constexpr std::array<Tile, 1> kBatchedAmpere = {{{128, 128}}};

std::span<const Tile> tiles_of(Family family, int generation) {
  if (family == Family::kMatmul || family == Family::kConvolution) return kSingle;
  if (generation < 70) return kBatchedPascal;
  if (generation < 75) return kBatchedVolta;
  if (generation < 80) return kBatchedTuring;
  return kBatchedAmpere;
}

constexpr double kNearly = 1 - 1e-9;  // for sums that are rounded in another order

// Of what is not negative. Short divisions are several times as fast, and next to all are short.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kShort = std::int64_t{1} << 31;
  if (a < kShort && b < kShort)
    return (static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b) - 1) / static_cast<std::uint32_t>(b);
  return (a + b - 1) / b;
}

// The same by a power of two.
constexpr std::int64_t ceil_shift(std::int64_t a, std::int64_t power) {
  return (a + power - 1) >> std::countr_zero(static_cast<std::uint64_t>(power));
}

// How many elements of a row double the time of a product.
double long_rows_of(const Work& work, const Machine& machine) {
  if (!work.is_along_rows) return std::numeric_limits<double>::infinity();
  return machine.generation < 70 ? machine.constants.long_rows_pascal : machine.constants.long_rows;
}

// The library picks the best of its kernels; so does the model. Each multiprocessor works on one tile at a time, so the
// last wave of tiles may leave most of them idle, and a tile that hangs over the edge is computed in full.
ProductTime tiled_time(const Work& work, const Machine& machine, double flops_per_s) {
  const Constants& c = machine.constants;
  // The probe walks along long rows, which cost it a part of the rate; without them a product may come near to the
  // peak, never above.
  const double peak = machine.rate(work.precision).peak_flops_per_s;
  const double least = peak > 0 ? static_cast<double>(work.flops) / peak : 0;
  const double traffic = static_cast<double>(work.bytes) / machine.stream_bytes_per_s;
  const bool may_split = work.family != Family::kBatched;
  const double per_multiprocessor = flops_per_s / machine.multiprocessors;
  const double long_rows = long_rows_of(work, machine);
  const double repeats = static_cast<double>(work.flops) /
                         (2.0 * static_cast<double>(work.b * work.m * work.n) * static_cast<double>(work.k));
  const auto outputs = static_cast<double>(work.b * work.m * work.n);
  const auto multiprocessors = static_cast<std::int64_t>(machine.multiprocessors);
  ProductTime best{0, 0, std::numeric_limits<double>::infinity()};
  for (const Tile& tile : tiles_of(work.family, machine.generation)) {
    const std::int64_t tiles = work.b * ceil_shift(work.m, tile.m) * ceil_shift(work.n, tile.n);
    const auto area = static_cast<double>(tile.m * tile.n);
    const double intensity = area / static_cast<double>(tile.m + tile.n);
    const double rate = per_multiprocessor * intensity / (intensity + c.tile_half_intensity);
    // With all multiprocessors busy to the end and nothing lost to long rows: most tiles are no better even so.
    const double ideal =
        static_cast<double>(tiles) / machine.multiprocessors * 2 * area * static_cast<double>(work.k) / rate * repeats;
    if (kNearly * overlapped(ideal, traffic, c.overlap_tiles) > best.both_s) continue;
    for (const std::int64_t split : may_split ? std::span<const std::int64_t>(kSplits) : kWhole) {
      if (split > work.k) break;
      const auto waves = static_cast<double>(ceil_div(tiles * split, multiprocessors));
      const auto depth = static_cast<double>(ceil_shift(work.k, split));
      const double compute = std::max(
          least, waves * 2 * area * depth / rate * (1 + std::min(depth / long_rows, c.long_rows_most)) * repeats);
      // Partial sums are written, and read again to be added.
      const double partial = split > 1 ? 2.0 * work.item_bytes * outputs * static_cast<double>(split) : 0;
      const double memory = split > 1 ? traffic + partial / machine.stream_bytes_per_s : traffic;
      const double both = overlapped(compute, memory, c.overlap_tiles);
      if (both < best.both_s) best = {compute, memory, both};
    }
  }
  return best;
}

}  // namespace

ProductTime product_time(const Work& work, const Machine& machine, double flops_per_s) {
  const Unit unit = machine.rate(work.precision).unit;
  const bool has_shape = work.m > 0 && work.n > 0 && work.k > 0;
  if (unit == Unit::kTiles && has_shape) return tiled_time(work, machine, flops_per_s);
  const double overlap =
      unit == Unit::kPlain ? machine.constants.overlap_stream : machine.constants.overlap_tensor_core;
  const double compute = static_cast<double>(work.flops) / flops_per_s;
  const double memory = static_cast<double>(work.bytes) / machine.stream_bytes_per_s;
  return {compute, memory, overlapped(compute, memory, overlap)};
}

}  // namespace tidemark::cost
