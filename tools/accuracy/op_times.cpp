#include "op_times.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string_view>

#include "tidemark/base/byte_source.h"
#include "tidemark/base/error.h"
#include "tidemark/device/catalog.h"

namespace tidemark::accuracy {

namespace {

using cost::Family;
using cost::Work;

// A file of comma-separated values without quotes, whole in memory.
class Csv {
 public:
  explicit Csv(const std::string& path) : path_(path) {
    const auto source =
        decompress_if_needed(open_file_source(path), path, {.max_bytes = 64 << 20, .max_expansion = kMaxExpansion});
    std::array<char, 1 << 16> buffer{};
    while (const std::size_t n = source->read(buffer)) text_.append(buffer.data(), n);
    next();
    for (std::size_t i = 0; i < cells_.size(); ++i) columns_[std::string(cells_[i])] = i;
  }

  // Goes to the next line; false at the end.
  bool next() {
    if (at_ >= text_.size()) return false;
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    std::string_view line = std::string_view(text_).substr(at_, end - at_);
    at_ = end + 1;
    cells_.clear();
    while (true) {
      const std::size_t comma = line.find(',');
      cells_.push_back(line.substr(0, comma));
      if (comma == std::string_view::npos) break;
      line.remove_prefix(comma + 1);
    }
    return true;
  }

  std::string text(const std::string& column) const {
    const auto found = columns_.find(column);
    if (found == columns_.end() || found->second >= cells_.size()) fail(column);
    return std::string(cells_[found->second]);
  }

  template <class Number>
  Number number(const std::string& column) const {
    const std::string cell = text(column);
    Number value{};
    const auto [end, code] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (code != std::errc() || end != cell.data() + cell.size()) fail(column);
    return value;
  }
  std::int64_t whole(const std::string& column) const { return number<std::int64_t>(column); }
  double seconds(const std::string& column) const { return number<double>(column) * 1e-3; }

 private:
  [[noreturn]] void fail(const std::string& column) const {
    throw Error({.kind = ErrorKind::kInput,
                 .place = path_,
                 .problem = "the measurements cannot be read",
                 .expected = fmt::format("a value for {} in every line", column),
                 .got = {},
                 .remedy = "data/op_times/README.md lists the files"});
  }

  std::string path_;
  std::string text_;
  std::size_t at_ = 0;
  std::vector<std::string_view> cells_;
  std::map<std::string, std::size_t> columns_;
};

bool is_binary(std::string_view op) { return op == "add" || op == "mul" || op == "div" || op == "pow"; }

Work linear_work(std::int64_t m, std::int64_t n, std::int64_t k) {
  Work work = cost::product_work(Family::kMatmul, 1, m, n, k);
  work.is_along_rows = true;  // nn.Linear keeps its weight as [n, k]
  return work;
}

Work vector_work(std::string_view op, std::int64_t rows, std::int64_t columns) {
  if (op == "softmax") return cost::rows_work(Family::kSoftmax, rows, columns);
  if (op == "layer_norm") return cost::rows_work(Family::kNorm, rows, columns);
  return cost::stream_work((is_binary(op) ? 12 : 8) * rows * columns);
}

// 3 x 3, as one product; `size` is the side of the square image.
Work convolution_work(const Csv& csv) {
  const std::int64_t side = csv.whole("size");
  const std::int64_t stride = csv.whole("stride");
  const std::int64_t kernel = csv.whole("kernel");
  const std::int64_t out = (side + 2 * csv.whole("padding") - kernel) / stride + 1;
  const std::int64_t images = csv.whole("b");
  const std::int64_t in_channels = csv.whole("c_in");
  const std::int64_t out_channels = csv.whole("c_out");
  Work work =
      cost::product_work(Family::kConvolution, 1, images * out * out, out_channels, in_channels * kernel * kernel);
  if (stride == 1) work.winograd_tiles = images * ((out + 3) / 4) * ((out + 3) / 4);
  work.bytes = 4 * (images * side * side * in_channels + kernel * kernel * in_channels * out_channels +
                    images * out * out * out_channels);
  return work;
}

void read_ops(const std::string& folder, OpTimes& times) {
  for (const char* file : {"linear.csv.zst", "bmm.csv.zst"})
    for (Csv csv(folder + "/" + file); csv.next();) {
      const std::string op = csv.text("op");
      const auto m = csv.whole("m"), n = csv.whole("n"), k = csv.whole("k");
      times.by_gpu[csv.text("gpu")].push_back(
          {op, csv.text("part"),
           op == "linear" ? linear_work(m, n, k) : cost::product_work(Family::kBatched, csv.whole("b"), m, n, k),
           csv.seconds("measured_ms")});
    }
  for (const char* file : {"elementwise.csv.zst", "softmax_layernorm.csv.zst"})
    for (Csv csv(folder + "/" + file); csv.next();)
      times.by_gpu[csv.text("gpu")].push_back({csv.text("op"), csv.text("part"),
                                               vector_work(csv.text("op"), csv.whole("rows"), csv.whole("cols")),
                                               csv.seconds("measured_ms")});
  for (Csv csv(folder + "/conv2d.csv.zst"); csv.next();)
    times.by_gpu[csv.text("gpu")].push_back({"conv2d", "grid", convolution_work(csv), csv.seconds("measured_ms")});
  for (Csv csv(folder + "/matmul_bf16.csv.zst"); csv.next();)
    times.tensor_core.push_back({"matmul_bf16", "grid",
                                 cost::product_work(Family::kMatmul, csv.whole("b"), csv.whole("m"), csv.whole("n"),
                                                    csv.whole("k"), device::Precision::kBFloat16, 2),
                                 csv.seconds("measured_ms")});
}

// The source lists what runs backward in terms of its forward ops; this is what PyTorch runs.
NodeCount node_count(const Csv& csv) {
  const std::string op = csv.text("op");
  const std::string node = csv.text("node_type");
  NodeCount row{csv.text("phase"), {}, csv.whole("count")};
  const auto m = csv.whole("m"), n = csv.whole("n"), k = csv.whole("k");
  if (op == "linear") {
    row.work = linear_work(m, n, k);
    row.work.is_along_rows = row.phase == "fwd";
  } else if (op == "bmm") {
    row.work = cost::product_work(Family::kBatched, csv.whole("b"), m, n, k);
  } else if (row.phase == "bwd" && node == "softmax") {
    row.work = cost::rows_work(Family::kSoftmax, m, n);
    row.work.is_backward = true;
    row.work.bytes = 12 * m * n;
    if (op == "softmax") row.count = 0;  // listed as two ops, runs as one
  } else if (row.phase == "bwd" && node == "ln") {
    row.work = cost::rows_work(Family::kNorm, m, n);
    row.work.is_backward = true;
    row.work.bytes = 12 * m * n;
  } else if (op == "mem") {
    row.work = cost::stream_work(csv.whole("bytes"));
    if (row.phase == "bwd" && node == "add") row.count = 0;  // the gradient is handed on, not copied
  } else if (op == "softmax" || op == "layer_norm") {
    row.work = vector_work(op, m, n);
  } else {
    row.work = cost::stream_work(csv.whole("bytes"));
  }
  return row;
}

void read_steps(const std::string& folder, OpTimes& times) {
  const auto name_of = [](const Csv& csv) {
    return fmt::format("{}, {}, {} x {}", csv.text("model"), csv.text("mode"), csv.text("seq"), csv.text("batch"));
  };
  std::map<std::string, std::vector<NodeCount>> ops;
  for (Csv csv(folder + "/step_ops.csv"); csv.next();) ops[name_of(csv)].push_back(node_count(csv));
  for (Csv csv(folder + "/step_times.csv"); csv.next();)
    if (ops.contains(name_of(csv)))
      times.steps.push_back(
          {csv.text("gpu"), name_of(csv), csv.seconds("fwd_ms") + csv.seconds("bwd_ms"), ops[name_of(csv)]});
}

}  // namespace

OpTimes read_op_times(const std::string& folder) {
  OpTimes times;
  read_ops(folder, times);
  read_steps(folder, times);
  return times;
}

device::Device device_of(const std::string& gpu) {
  static const std::map<std::string, std::string> kNames = {
      {"P4", "p4"}, {"P100", "p100-pcie"},       {"V100", "v100-pcie-32"},
      {"T4", "t4"}, {"A100-40", "a100-40-pcie"}, {"H100", "h100-sxm"}};
  return device::find_device(kNames.at(gpu));
}

}  // namespace tidemark::accuracy
