#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tidemark::cost {

// What kind of work an op is; each kind has its own formula (docs/cost_model.md).
enum class Family : std::uint8_t {
  kFree,         // views, and new memory that nothing is written to: no work for the device
  kMatmul,       // one matrix product
  kBatched,      // many small ones
  kConvolution,  //
  kAttention,    // fused
  kSoftmax,      //
  kNorm,         // layer norm and its kin
  kStream,       // reads and writes each element once: everything elementwise, copies, reductions, gathers
  kCollective,   // talks to other devices
  kUnpriced,     // nothing is known about it
};
inline constexpr std::array<std::string_view, 10> kFamilyNames = {
    "free", "matmul", "batched", "convolution", "attention", "softmax", "norm", "stream", "collective", "unpriced"};
inline constexpr std::size_t kFamilyCount = kFamilyNames.size();

// Every number of the cost model that is not a figure of the device. All of them are here, each says what it means.
//
// Origin, unless a line says otherwise: fitted in November 2026 to the single-op times of five GPUs (P4, P100, V100,
// T4, A100 40 GB; measured by the authors of NeuSight, ASPLOS 2025, PyTorch 2.1, float32) by `build/accuracy
// --fit`, and rounded. docs/accuracy.md tells what remains as error when a GPU is left out of the fit.
struct Constants {
  // The part of the listed bandwidth that a kernel reaches that streams through memory. GDDR boards keep their error
  // correction in the same memory; Pascal's controllers reach no more with HBM either.
  double stream_hbm = 0.90;
  double stream_low = 0.75;  // GDDR, and Pascal
  double stream_ddr = 0.70;  // assumed, CPUs

  // Computing and moving overlap in part: t = longer + overlap * shorter.
  double overlap_tiles = 0.40;        // matrix products in tiles
  double overlap_tensor_core = 0.15;  // fitted to 250 bfloat16 products on an H100 (OpenXLA's table, 2026)
  double overlap_stream = 0.57;       // everything else

  // A tile of a x c outputs does a c / (a + c) multiplications for every element it loads; half of the rate is reached
  // at this many.
  double tile_half_intensity = 4.2;

  // A product that walks along rows of both operands finds long rows far apart and misses the address cache: compute
  // time doubles over this many elements of a row, of those that one split of the sum covers, and grows to 1 +
  // long_rows_most at the most, when every access misses.
  double long_rows = 27000;
  double long_rows_pascal = 2700;
  double long_rows_most = 1.5;

  // A kernel that reads its rows again finds them in L2 as long as the rows in flight take less than the first part of
  // L2, and none of them from the second part on (log-linear between).
  double cache_all = 0.35;
  double cache_none = 1.4;

  // For boards without a probe: what large float32 products reach of the listed peak, and what a board sustains per
  // watt, by generation. T4 and P4 reach 62 GFLOP/s per watt. Later ones are assumed: no less than the A100's 66; 82.6
  // TFLOP/s at the 450 W of an RTX 4090.
  double float32_peak = 0.9;
  double flops_per_watt = 62e9;
  double flops_per_watt_ampere = 75e9;
  double flops_per_watt_ada = 170e9;
  // What large products reach of a tensor core's dense peak, for boards without a probe. H100: 780 of 989 TFLOP/s.
  double tensor_core_peak = 0.79;
  // What a tensor core kernel takes beside its work, in microseconds. The H100 of OpenXLA's table.
  double kernel_us = 5.3;

  // Fused attention against a matrix product at the same precision. FlashAttention-2 (Dao, 2023) reports up to 73 % of
  // an A100's peak forward and 63 % backward.
  double attention_forward = 0.83;
  double attention_backward = 0.72;

  // Convolutions in float32: as one product, at this part of a product's rate; or, 3 x 3 at stride 1, as 36 products
  // over patches (Winograd), a quarter of the work at a lower rate, between transforms of filter and result; the better
  // of the two. Either takes several kernels.
  double convolution_direct = 0.90;
  double convolution_winograd = 0.63;
  double convolution_us = 200;

  // Work of drawing one random number, in floating-point operations: ten Philox rounds of ten instructions for four
  // numbers, and the conversion. V100, dropout over 33.5 M elements: 38.
  double random_flops = 38;

  // What a call costs the host, in microseconds, in eager PyTorch 2.1; the smallest times of the data.
  std::array<double, kFamilyCount> host_us = {7, 58, 26, 100, 60, 34, 47, 25, 60, 30};
  // From how much of that to how much: a small pointwise op takes 7 us from call to call on a host of 2026 (FlagGems,
  // issue 4812), and a relu 53 us on the slowest host of the data, that of the P100.
  double host_least = 7.0 / 25;
  double host_most = 53.0 / 25;

  // What a checkpointed region costs the host beside the ops it runs again: once, for each save in it, and for keeping
  // the random state. Measured as `tidemark.calibrate` does, with cold caches, torch 2.13 on one thread of a shared
  // CPU, November 2026: 0.5 to 0.7 ms, 12 to 29 us and 0.10 to 0.19 ms; taken as half of that on the host of an
  // accelerator. A table of measured ops has its own figures.
  double region_us = 300;
  double region_save_us = 9;
  double region_rng_us = 70;
  // How far off these may be, as a part of them: the widest of the ranges above about its middle, 12 to 29 us.
  double region_error = 0.41;

  // How far off totals of a family may be, as a part of them: the mean error on the worst GPU when it is left out.
  std::array<double, kFamilyCount> error = {0, 0.14, 0.21, 0.30, 0.40, 0.18, 0.10, 0.10, 0.50, 0};
  // The same where nothing was fitted: on a CPU without a table, and far above the sizes that a table has. Assumed.
  double guess_error = 0.5;
  // How far off measured times may be in another run: steps of five models of 10 M parameters by tables of their own
  // were off by up to 10.8 %, one thread of a shared CPU, November 2026 (docs/limitations.md).
  double measured_error = 0.11;
  // A reasonable guess for unpriced ops is between nothing and this many times what launching them and moving
  // their bytes takes.
  double unpriced_factor = 10;
};

inline constexpr Constants kConstants = {};

}  // namespace tidemark::cost
