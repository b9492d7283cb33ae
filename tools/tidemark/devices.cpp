// tidemark devices [DEVICE]: the devices that estimates know, or all figures of one with their sources.

#include <fmt/format.h>

#include <memory>

#include "commands.h"
#include "text_layout.h"
#include "tidemark/base/bytes.h"
#include "tidemark/device/catalog.h"

namespace tidemark::cli {

namespace {

using namespace device;

Json figure_json(const Device& device, const Figure& figure) {
  return {{"value", figure.value}, {"source", device.source_text(figure.source)}};
}

Json by_precision_json(const Device& device, const FigureByPrecision& figures) {
  Json json = Json::object();
  for (std::size_t i = 0; i < figures.size(); ++i)
    if (figures[i]) json[kPrecisionNames[i]] = figure_json(device, *figures[i]);
  return json;
}

Json link_json(const Device& d, const Link& link) {
  return {{"kind", link.kind},
          {"bytes_per_s", figure_json(d, link.bytes_per_s)},
          {"latency_ns", figure_json(d, link.latency_ns)}};
}

Json to_json(const Device& d) {
  return {{"name", d.name},
          {"title", d.title},
          {"aliases", d.aliases},
          {"kind", kDeviceKindNames[static_cast<std::size_t>(d.kind)]},
          {"generation", d.generation},
          {"memory_type", kMemoryTypeNames[static_cast<std::size_t>(d.memory_type)]},
          {"memory_bytes", figure_json(d, d.memory_bytes)},
          {"bandwidth_bytes_per_s", figure_json(d, d.bandwidth_bytes_per_s)},
          {"multiprocessors", figure_json(d, d.multiprocessors)},
          {"l2_bytes", figure_json(d, d.l2_bytes)},
          {"board_watts", figure_json(d, d.board_watts)},
          {"stream_permille", d.stream_permille ? figure_json(d, *d.stream_permille) : Json(nullptr)},
          {"peak_flops", by_precision_json(d, d.peak_flops)},
          {"matrix_flops", by_precision_json(d, d.matrix_flops)},
          {"achieved_permille", by_precision_json(d, d.achieved_permille)},
          {"launch_floor_ns", figure_json(d, d.launch_floor_ns)},
          {"link", link_json(d, d.link)},
          {"network", d.network ? link_json(d, *d.network) : Json(nullptr)},
          {"allocator_rounding_bytes", figure_json(d, d.allocator_rounding_bytes)},
          {"overhead_bytes", figure_json(d, d.overhead_bytes)}};
}

std::string tera(std::int64_t value) { return fmt::format("{:.4g}", static_cast<double>(value) / 1e12); }
std::string giga(std::int64_t value) { return fmt::format("{:.5g}", static_cast<double>(value) / 1e9); }

// The rate of sixteen-bit matrix products, which training runs on where the device has them.
std::string half_text(const Device& device) {
  const auto& figure =
      device.peak(Precision::kBFloat16) ? device.peak(Precision::kBFloat16) : device.peak(Precision::kFloat16);
  return figure ? tera(figure->value) : "-";
}

std::string list_text(const std::vector<Device>& devices) {
  Table table("<>>>><");
  table.row({"", "GB", "GB/s", "TFLOP/s fp32", "16 bit", ""});
  for (const Device& d : devices)
    table.row({d.name, giga(d.memory_bytes.value), giga(d.bandwidth_bytes_per_s.value),
               tera(d.peak(Precision::kFloat32)->value), half_text(d), d.title});
  return table.text(0) + "peaks are dense, without structured sparsity; GB are 10^9 bytes\n";
}

std::string one_text(const Device& d, const Console& console) {
  Table table("<><");
  const auto row = [&](std::string name, std::string value, const Figure& figure) {
    table.row({std::move(name), std::move(value), d.source_text(figure.source)});
  };
  row("memory", format_count(d.memory_bytes.value) + " B", d.memory_bytes);
  row("bandwidth", giga(d.bandwidth_bytes_per_s.value) + " GB/s", d.bandwidth_bytes_per_s);
  if (d.stream_permille) row("streams reach", fmt::format("{} / 1000", d.stream_permille->value), *d.stream_permille);
  for (std::size_t i = 0; i < d.peak_flops.size(); ++i)
    if (d.peak_flops[i])
      row(fmt::format("peak {}", kPrecisionNames[i]), tera(d.peak_flops[i]->value) + " TFLOP/s", *d.peak_flops[i]);
  for (std::size_t i = 0; i < d.matrix_flops.size(); ++i)
    if (d.matrix_flops[i])
      row(fmt::format("matrix peak {}", kPrecisionNames[i]), tera(d.matrix_flops[i]->value) + " TFLOP/s",
          *d.matrix_flops[i]);
  for (std::size_t i = 0; i < d.achieved_permille.size(); ++i)
    if (d.achieved_permille[i])
      row(fmt::format("achieved {}", kPrecisionNames[i]), fmt::format("{} / 1000", d.achieved_permille[i]->value),
          *d.achieved_permille[i]);
  row("multiprocessors", format_count(d.multiprocessors.value), d.multiprocessors);
  row("L2", format_bytes(d.l2_bytes.value), d.l2_bytes);
  row("board", fmt::format("{} W", d.board_watts.value), d.board_watts);
  row("launch floor", format_count(d.launch_floor_ns.value) + " ns", d.launch_floor_ns);
  row("link " + d.link.kind, giga(d.link.bytes_per_s.value) + " GB/s", d.link.bytes_per_s);
  row("link latency", format_count(d.link.latency_ns.value) + " ns", d.link.latency_ns);
  if (d.network) {
    row("network " + d.network->kind, giga(d.network->bytes_per_s.value) + " GB/s", d.network->bytes_per_s);
    row("network latency", format_count(d.network->latency_ns.value) + " ns", d.network->latency_ns);
  }
  row("allocator rounds to", format_count(d.allocator_rounding_bytes.value) + " B", d.allocator_rounding_bytes);
  row("overhead", format_count(d.overhead_bytes.value) + " B", d.overhead_bytes);
  return console.heading(elide(fmt::format("{}: {}", d.name, d.title), kMaxColumns)) + "\n" + table.text(2);
}

ExitCode run_devices(const std::string& name, const Console& console) {
  if (name.empty()) {
    if (console.json()) {
      Json list = Json::array();
      for (const Device& d : built_in_devices()) list.push_back(to_json(d));
      console.print_json(list);
    } else {
      console.print(list_text(built_in_devices()));
    }
    return ExitCode::kOk;
  }
  const Device found = find_device(name);
  if (console.json()) {
    console.print_json(to_json(found));
  } else {
    console.print(one_text(found, console));
  }
  return ExitCode::kOk;
}

}  // namespace

Command add_devices(CLI::App& root) {
  CLI::App* app = new_command(root, {.name = "devices",
                                     .summary = "List the devices that estimates know, with the source of every figure",
                                     .examples = {{{"build/tidemark devices", "all of them"},
                                                   {"build/tidemark devices h100-sxm", "one, figure by figure"},
                                                   {"build/tidemark devices --json", "for scripts"}}}});
  const auto name = std::make_shared<std::string>();
  app->add_option("DEVICE", *name, "a name or alias, or the path of a device file");
  return {app, [name](Console& console) { return run_devices(*name, console); }};
}

}  // namespace tidemark::cli
