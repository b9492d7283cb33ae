// The formulas of docs/cost_model.md, with figures worked out by hand.

#include "tidemark/cost/op_time.h"

#include <gtest/gtest.h>

#include "tidemark/cost/products.h"
#include "tidemark/device/catalog.h"

namespace tidemark::cost {
namespace {

using device::Precision;

// Round figures: 4 multiprocessors, 1 GB/s, 1 TFLOP/s, 10 us a launch, 1 MB of L2.
Machine round_machine(Unit unit = Unit::kTiles) {
  Machine m;
  m.generation = 80;
  m.multiprocessors = 4;
  m.threads_per_multiprocessor = 2048;
  m.l2_bytes = 1e6;
  m.stream_bytes_per_s = 1e9;
  m.launch_s = 10e-6;
  m.vector_flops_per_s = 1e12;
  m.constants.tile_half_intensity = 0;
  m.constants.overlap_tiles = 0.5;
  m.constants.overlap_stream = 0.5;
  m.constants.overlap_tensor_core = 0.25;
  for (Rate& rate : m.rates) rate = {1e12, unit};
  return m;
}

TEST(OpTime, AStreamTakesItsBytesAndALaunch) {
  // 5,000 bytes at 1 GB/s are 5 us.
  const Time time = op_time(stream_work(5000), round_machine());
  EXPECT_EQ(time.memory_ps, 5'000'000);
  EXPECT_EQ(time.compute_ps, 0);
  EXPECT_EQ(time.launch_ps, 10'000'000);
  EXPECT_EQ(time.total_ps, 15'000'000);
  EXPECT_EQ(time.source, TimeSource::kModelled);
}

TEST(OpTime, RandomNumbersAreWork) {
  Work work = stream_work(5000);
  work.random = 100'000;
  Machine machine = round_machine();
  machine.constants.random_flops = 20;
  // 2,000,000 operations at 1 TFLOP/s are 2 us, half of which hides behind the 5 us of traffic.
  EXPECT_EQ(op_time(work, machine).compute_ps, 2'000'000);
  EXPECT_EQ(op_time(work, machine).total_ps, 10'000'000 + 5'000'000 + 1'000'000);
}

TEST(OpTime, TilesRunInWaves) {
  // Five products of 128 x 128 x 1000 are five tiles on four multiprocessors: two waves. A multiprocessor does 0.25
  // TFLOP/s, a tile has 2 * 128 * 128 * 1000 = 32.768 MFLOP: 131.072 us a wave.
  Work work = product_work(Family::kBatched, 5, 128, 128, 1000);
  work.bytes = 1000;
  const Time time = op_time(work, round_machine());
  EXPECT_EQ(time.compute_ps, 262'144'000);
  EXPECT_EQ(time.memory_ps, 1'000'000);
  EXPECT_EQ(time.total_ps, 10'000'000 + 262'144'000 + 500'000);
  // Four fit one wave.
  work = product_work(Family::kBatched, 4, 128, 128, 1000);
  EXPECT_EQ(op_time(work, round_machine()).compute_ps, 131'072'000);
}

TEST(OpTime, ATileOverTheEdgeIsComputedInFull) {
  EXPECT_EQ(op_time(product_work(Family::kBatched, 1, 129, 128, 1000), round_machine()).compute_ps,
            op_time(product_work(Family::kBatched, 4, 128, 128, 1000), round_machine()).compute_ps);
  EXPECT_EQ(op_time(product_work(Family::kBatched, 1, 1, 1, 1000), round_machine()).compute_ps, 131'072'000);
}

TEST(OpTime, SingleProductsMaySplitTheSum) {
  // 32 x 32 outputs would keep one multiprocessor busy for 2 * 32 * 32 * 8000 / 0.25e12 = 65.536 us; in four splits
  // each does a quarter. Eight splits would take two waves of an eighth: as long, but with more traffic.
  Work work = product_work(Family::kMatmul, 1, 32, 32, 8000);
  work.bytes = 0;
  Machine machine = round_machine();
  machine.stream_bytes_per_s = 1e15;
  EXPECT_EQ(op_time(work, machine).compute_ps, 16'384'000);
}

TEST(OpTime, LongRowsCostMore) {
  Machine machine = round_machine();
  machine.constants.long_rows = 1000;
  machine.constants.long_rows_most = 1.5;
  Work work = product_work(Family::kBatched, 4, 128, 128, 1000);
  work.is_along_rows = true;
  EXPECT_EQ(op_time(work, machine).compute_ps, 2 * 131'072'000);
  machine.constants.long_rows = 100;  // ten times as long, but at most 1 + 1.5
  EXPECT_EQ(op_time(work, machine).compute_ps, 131'072'000 / 2 * 5);
}

TEST(OpTime, TensorCoresOverlapMore) {
  // 2 * 100^3 = 2 MFLOP at 1 TFLOP/s are 2 us; 3 * 100^2 * 2 B at 1 GB/s are 60 us.
  const Work work = product_work(Family::kMatmul, 1, 100, 100, 100, Precision::kBFloat16, 2);
  const Time time = op_time(work, round_machine(Unit::kTensorCore));
  EXPECT_EQ(time.compute_ps, 2'000'000);
  EXPECT_EQ(time.memory_ps, 60'000'000);
  EXPECT_EQ(time.total_ps, 10'000'000 + 60'000'000 + 500'000);
}

TEST(OpTime, RowsThatLeaveTheCacheAreReadAgain) {
  Machine machine = round_machine();
  machine.constants.cache_all = 0.5;
  machine.constants.cache_none = 2;
  // A block of 128 threads has a row: 2048 / 128 * 4 = 64 rows are in flight. 64 rows of 1,000 floats are 0.256 of L2:
  // read once, written once. 64 of 10,000 are 2.56 of it: read twice. Of 3,906.25 columns they would be just L2:
  // ln(1 / 0.5) / ln(2 / 0.5) = half of them again.
  EXPECT_EQ(op_time(rows_work(Family::kNorm, 100, 1000), machine).memory_ps, 800'000'000);
  EXPECT_EQ(op_time(rows_work(Family::kNorm, 100, 10000), machine).memory_ps, 12'000'000'000);
  machine.l2_bytes = 64 * 4000 * 4;
  EXPECT_EQ(op_time(rows_work(Family::kNorm, 100, 4000), machine).memory_ps, 4'000'000'000);
}

TEST(OpTime, SoftmaxReadsLongRowsThreeTimes) {
  Machine machine = round_machine();
  machine.l2_bytes = 1;  // nothing stays
  EXPECT_EQ(op_time(rows_work(Family::kSoftmax, 10, 1024), machine).memory_ps, 10 * 1024 * 8 * 1000);
  EXPECT_EQ(op_time(rows_work(Family::kSoftmax, 10, 1025), machine).memory_ps, 10 * 1025 * 16 * 1000);
}

TEST(OpTime, WinogradIsAChoice) {
  // 3 x 3, 8 images of 32 x 32, 64 to 64 channels, on tiles: directly 2 * 8192 * 64 * 576 FLOP. The 36 products over
  // 512 patches are 36 * 2 * 512 * 64 * 64, a quarter of that.
  Work work = product_work(Family::kConvolution, 1, 8 * 32 * 32, 64, 64 * 9);
  Machine machine = round_machine();
  machine.stream_bytes_per_s = 1e15;
  machine.constants.convolution_direct = 1;
  machine.constants.convolution_winograd = 1;
  machine.constants.convolution_us = 0;
  const std::int64_t direct = op_time(work, machine).compute_ps;
  EXPECT_EQ(direct, 603'979'776);  // 603,979,776 FLOP at 1 TFLOP/s, tiles and waves full
  work.winograd_tiles = 8 * 8 * 8;
  EXPECT_EQ(op_time(work, machine).compute_ps, 150'994'944);
  // The products move 4 * 36 * (512 * 64 + 64 * 64 + 512 * 64) bytes; the transforms 4 * 64 * (576 + 36 * 64) for the
  // filter and 4 * 64 * (36 * 512 + 8192) for the result: 17,580,032 together.
  EXPECT_EQ(op_time(work, machine).memory_ps, 17'580);
}

TEST(OpTime, FreeAndUnpricedOpsTakeNothing) {
  Work work;
  work.family = Family::kFree;
  EXPECT_EQ(op_time(work, round_machine()).total_ps, 0);
  EXPECT_EQ(op_time(work, round_machine()).source, TimeSource::kFree);
  work.family = Family::kUnpriced;
  work.bytes = 1000;
  EXPECT_EQ(op_time(work, round_machine()).total_ps, 0);
  EXPECT_EQ(op_time(work, round_machine()).memory_ps, 1'000'000);
  EXPECT_EQ(op_time(work, round_machine()).source, TimeSource::kUnpriced);
}

// A device with a probe gives the probe's time, whatever the constants.
TEST(Machine, ReproducesTheProbe) {
  const device::Device a100 = device::find_device("a100-40-pcie");
  Constants constants;
  constants.overlap_tiles = 0.9;
  const Machine machine = make_machine(a100, constants);
  Work probe = product_work(Family::kMatmul, 1, kProbeSize, kProbeSize, kProbeSize);
  probe.is_along_rows = true;
  const Time time = op_time(probe, machine);
  // 843 / 1000 of 19.5 TFLOP/s; the file's source says 8.35696 ms.
  const double kernel_ms = static_cast<double>(time.total_ps - time.launch_ps) * 1e-9 + constants.kernel_us * 1e-3;
  EXPECT_NEAR(kernel_ms, 8.357, 0.01);
}

// The probe walks along long rows, which cost a part of the rate; a product that does not is no faster than the peak.
TEST(Machine, NoProductIsFasterThanThePeak) {
  for (const device::Device& device : device::built_in_devices()) {
    const Machine machine = make_machine(device);
    for (std::size_t i = 0; i < device::kPrecisionNames.size(); ++i) {
      const auto precision = static_cast<device::Precision>(i);
      if (!device.peak(precision)) continue;
      for (const std::int64_t size : {512, 2048, 4096, 16384}) {
        for (const Family family : {Family::kMatmul, Family::kBatched}) {
          const Work work = product_work(family, 1, size, size, size, precision, 4);
          const double seconds = static_cast<double>(op_time(work, machine).total_ps) * 1e-12;
          EXPECT_LE(static_cast<double>(work.flops) / seconds,
                    static_cast<double>(device.product_peak(precision)->value))
              << device.name << " " << device::kPrecisionNames[i] << " " << size;
        }
      }
    }
  }
}

TEST(Machine, EveryBuiltInDeviceHasARateForEveryPrecision) {
  for (const device::Device& device : device::built_in_devices()) {
    const Machine machine = make_machine(device);
    for (const Rate& rate : machine.rates) EXPECT_GT(rate.flops_per_s, 0) << device.name;
    EXPECT_GT(machine.stream_bytes_per_s, 0) << device.name;
  }
}

TEST(Machine, MoreOfEverythingIsNeverSlower) {
  const Machine machine = make_machine(device::find_device("h100-sxm"));
  std::int64_t before = 0;
  for (std::int64_t size = 64; size <= 16384; size *= 2) {
    const std::int64_t time =
        op_time(product_work(Family::kMatmul, 1, size, size, size, Precision::kBFloat16, 2), machine).total_ps;
    EXPECT_GT(time, before);
    before = time;
  }
}

}  // namespace
}  // namespace tidemark::cost
