#include "tidemark/device/read_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

#include "tidemark/base/byte_source.h"
#include "tidemark/base/duration.h"
#include "tidemark/base/error.h"
#include "tidemark/base/rounding.h"
#include "tidemark/base/strict_json.h"
#include "tidemark/base/utf8.h"

namespace tidemark::device {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxTextBytes = 2000;
constexpr std::size_t kMaxList = 64;
constexpr std::size_t kMaxMeasured = 1 << 18;
constexpr std::size_t kMaxWorkBytes = 400;
constexpr std::size_t kMaxKeyBytes = 64 << 10;
constexpr std::int64_t kMaxMeasuredNs = 1'000'000'000'000;  // a quarter of an hour for one op
constexpr std::int64_t kMaxFigure = std::int64_t{1} << 60;

// What a figure can be at all, and how it is written: figures in other units (a peak of 67 for 67e12) are noticed here.
struct Bounds {
  std::int64_t least;
  std::int64_t most;
  std::string_view unit;
  std::string_view example;
};
constexpr std::int64_t kGiga = 1'000'000'000;
constexpr std::int64_t kPeta = 1'000'000 * kGiga;
constexpr Bounds kMemoryBytes = {kGiga / 1000, kPeta, "bytes", "80 GB are 80000000000"};
constexpr Bounds kBandwidth = {kGiga, kPeta, "bytes per second", "3.35 TB/s are 3350000000000"};
constexpr Bounds kCount = {1, 1 << 20, "multiprocessors", "an H100 SXM has 132"};
constexpr Bounds kCacheBytes = {1024, 1000 * kGiga, "bytes", "50 MiB are 52428800"};
constexpr Bounds kWatts = {1, 100'000, "watts", "an H100 SXM has 700"};
constexpr Bounds kPeakFlops = {kGiga, 1000 * kPeta, "FLOP per second", "67 TFLOP/s are 67000000000000"};
constexpr Bounds kAchieved = {1, 2000, "thousandths of the peak", "72 % are 720"};
constexpr Bounds kStream = {1, 1000, "thousandths of the bandwidth", "90 % are 900"};
constexpr Bounds kLaunchNs = {0, kGiga / 100, "nanoseconds", "10 us are 10000"};
constexpr Bounds kLinkRate = {kGiga / 1000, kPeta, "bytes per second", "450 GB/s are 450000000000"};
constexpr Bounds kLinkNs = {0, kGiga, "nanoseconds", "5 us are 5000"};
constexpr Bounds kRounding = {1, kMostRoundingBytes, "bytes", "PyTorch on CUDA rounds to 512"};
constexpr Bounds kOverheadBytes = {0, kPeta, "bytes", "500 MiB are 524288000"};

[[noreturn]] void refuse(std::string place, std::string problem, std::string expected = {}, std::string got = {},
                         std::string remedy = {}) {
  throw Error({.kind = ErrorKind::kInput,
               .place = std::move(place),
               .problem = std::move(problem),
               .expected = std::move(expected),
               .got = std::move(got),
               .remedy = std::move(remedy)});
}

std::string shown(const Json& json) { return shown_in_error(json); }

// Walks one JSON object and makes sure that everything in it is used.
class Fields {
 public:
  Fields(const Json& json, std::string place) : json_(json), place_(std::move(place)) {
    if (!json.is_object()) refuse(place_, "this is no object", "a JSON object", shown(json));
  }

  const Json& get(const std::string& key) {
    const auto found = json_.find(key);
    if (found == json_.end()) refuse(at(key), "the field is missing", "the fields of docs/device_format.md");
    used_.insert(key);
    return *found;
  }

  const Json* find(const std::string& key) { return json_.contains(key) ? &get(key) : nullptr; }

  std::string text(const std::string& key) {
    const Json& value = get(key);
    return text_of(value, at(key));
  }

  static std::string text_of(const Json& value, const std::string& place, std::size_t most = kMaxTextBytes) {
    if (!value.is_string()) refuse(place, "the value is of the wrong kind", "a text", shown(value));
    auto text = value.get<std::string>();
    if (text.empty() || text.size() > most || !is_utf8(text) ||
        std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }))
      refuse(place, "the text cannot be used", fmt::format("1 to {} bytes of UTF-8 without control characters", most),
             shown(value));
    return text;
  }

  template <class Enum, std::size_t N>
  Enum word(const std::string& key, const std::array<std::string_view, N>& names) {
    const std::string text = this->text(key);
    const auto found = std::find(names.begin(), names.end(), text);
    if (found == names.end())
      refuse(at(key), "the word is unknown", fmt::format("one of {}", fmt::join(names, ", ")),
             fmt::format("\"{}\"", text));
    return static_cast<Enum>(found - names.begin());
  }

  Figure figure(const std::string& key, const Bounds& bounds) { return figure_of(get(key), at(key), bounds); }

  static Figure figure_of(const Json& value, const std::string& place, const Bounds& bounds) {
    const bool is_pair = value.is_array() && value.size() == 2;
    if (!is_pair)
      refuse(place, "the value is of the wrong kind", "[number, \"source\"]: every figure has its source",
             shown(value));
    const auto refuse_number = [&](std::string problem) {
      refuse(place, std::move(problem),
             fmt::format("a whole number of {} from {} to {}", bounds.unit, bounds.least, bounds.most), shown(value[0]),
             fmt::format("check the unit: {}", bounds.example));
    };
    if (!value[0].is_number_integer() || (value[0].is_number_unsigned() && value[0].get<std::uint64_t>() > kMaxFigure))
      refuse_number("the number cannot be used");
    const auto number = value[0].get<std::int64_t>();
    if (number < bounds.least || number > bounds.most) refuse_number("the number is out of range");
    return {number, text_of(value[1], place)};
  }

  void finish() const {
    for (const auto& [key, value] : json_.items())
      if (!used_.contains(key))
        refuse(at(key), "the field is unknown", "the fields of docs/device_format.md", {}, "check its spelling");
  }

  const Json& json() const { return json_; }
  std::string at(const std::string& key) const {
    std::string safe;
    for (const char c : key.substr(0, 60)) safe += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
    return fmt::format("{}: {}", place_, is_utf8(safe) ? safe : "?");
  }

 private:
  const Json& json_;
  std::string place_;
  std::set<std::string> used_;
};

FigureByPrecision by_precision(const Json& json, const std::string& place, const Bounds& bounds) {
  FigureByPrecision figures;
  const Fields fields(json, place);
  for (const auto& [key, value] : json.items()) {
    const auto found = std::find(kPrecisionNames.begin(), kPrecisionNames.end(), key);
    if (found == kPrecisionNames.end())
      refuse(fields.at(key), "the precision is unknown", fmt::format("one of {}", fmt::join(kPrecisionNames, ", ")));
    figures[static_cast<std::size_t>(found - kPrecisionNames.begin())] =
        Fields::figure_of(value, fields.at(key), bounds);
  }
  return figures;
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

// "9.0", "12.1": one or two digits, a dot, one digit.
bool is_capability(std::string_view text) {
  const std::size_t dot = text.find('.');
  const auto are_digits = [](std::string_view part) {
    return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  return dot != std::string_view::npos && dot <= 2 && text.size() == dot + 2 && are_digits(text.substr(0, dot)) &&
         are_digits(text.substr(dot + 1));
}

class Reader {
 public:
  Reader(const Json& json, const std::string& name) : name_(name), fields_(json, name) {}

  Device run() {
    check_kind_of_file();
    Device d;
    d.name = fields_.text("name");
    if (!is_plain_name(d.name))
      refuse(fields_.at("name"), "the name cannot be used", "lower case letters, digits, dashes and dots",
             shown(fields_.get("name")));
    d.title = fields_.text("title");
    read_aliases(d);
    d.kind = fields_.word<DeviceKind>("kind", kDeviceKindNames);
    d.generation = fields_.text("generation");
    if (d.kind == DeviceKind::kCuda && !is_capability(d.generation))
      refuse(fields_.at("generation"), "the compute capability cannot be read", "a number such as \"9.0\"",
             shown(fields_.get("generation")), "NVIDIA's list of CUDA GPUs has it");
    d.memory_type = fields_.word<MemoryType>("memory_type", kMemoryTypeNames);
    d.memory_bytes = fields_.figure("memory_bytes", kMemoryBytes);
    d.bandwidth_bytes_per_s = fields_.figure("bandwidth_bytes_per_s", kBandwidth);
    if (fields_.find("stream_permille") != nullptr) d.stream_permille = fields_.figure("stream_permille", kStream);
    d.multiprocessors = fields_.figure("multiprocessors", kCount);
    d.l2_bytes = fields_.figure("l2_bytes", kCacheBytes);
    d.board_watts = fields_.figure("board_watts", kWatts);
    d.peak_flops = by_precision(fields_.get("peak_flops"), fields_.at("peak_flops"), kPeakFlops);
    if (!d.peak(Precision::kFloat32))
      refuse(fields_.at("peak_flops"), "there is no figure for float32", "at least that one");
    if (const Json* matrix = fields_.find("matrix_flops"))
      d.matrix_flops = by_precision(*matrix, fields_.at("matrix_flops"), kPeakFlops);
    check_matrix(d);
    if (const Json* achieved = fields_.find("achieved_permille"))
      d.achieved_permille = by_precision(*achieved, fields_.at("achieved_permille"), kAchieved);
    check_achieved(d);
    d.launch_floor_ns = fields_.figure("launch_floor_ns", kLaunchNs);
    d.link = read_link("link");
    if (fields_.find("network") != nullptr) d.network = read_link("network");
    d.allocator_rounding_bytes = fields_.figure("allocator_rounding_bytes", kRounding);
    d.overhead_bytes = fields_.figure("overhead_bytes", kOverheadBytes);
    read_sources(d);
    read_measured(d);
    fields_.finish();
    check_sources(d);
    return d;
  }

 private:
  void check_kind_of_file() {
    if (fields_.text("tidemark") != "device")
      refuse(fields_.at("tidemark"), "this is another kind of file", "\"device\"", shown(fields_.get("tidemark")));
    const Json& version = fields_.get("version");
    const bool is_version =
        version.is_array() && version.size() == 2 && version[0].is_number_unsigned() && version[1].is_number_unsigned();
    if (!is_version) refuse(fields_.at("version"), "the version is malformed", "[major, minor]", shown(version));
    if (version[0] != 1)
      refuse(fields_.at("version"), "the version is not known", "[1, 0]", shown(version), "use a newer tidemark");
  }

  // They are there because they are faster than the rest.
  void check_matrix(const Device& d) const {
    for (std::size_t i = 0; i < kPrecisionNames.size(); ++i)
      if (d.matrix_flops[i] && (!d.peak_flops[i] || d.matrix_flops[i]->value <= d.peak_flops[i]->value))
        refuse(fields_.at("matrix_flops"),
               fmt::format("the figure for {} is not above that of peak_flops, or there is none", kPrecisionNames[i]),
               "what matrix units do where other work runs at a lower peak", {},
               "leave it out where there is one peak for both");
  }

  // It is a part of the peak, and says nothing without one.
  void check_achieved(const Device& d) const {
    for (std::size_t i = 0; i < kPrecisionNames.size(); ++i)
      if (d.achieved_permille[i] && !d.peak_flops[i])
        refuse(fields_.at("achieved_permille"),
               fmt::format("{} has no peak that this could be a part of", kPrecisionNames[i]),
               fmt::format("peak_flops with a figure for {}, too", kPrecisionNames[i]));
  }

  void read_aliases(Device& d) {
    const Json* list = fields_.find("aliases");
    if (list == nullptr) return;
    if (!list->is_array() || list->size() > kMaxList)
      refuse(fields_.at("aliases"), "the value is of the wrong kind",
             fmt::format("a list of at most {} texts", kMaxList), shown(*list));
    for (const Json& alias : *list) d.aliases.push_back(Fields::text_of(alias, fields_.at("aliases")));
  }

  Link read_link(const std::string& key) {
    Fields link(fields_.get(key), fields_.at(key));
    Link result{link.text("kind"), link.figure("bytes_per_s", kLinkRate), link.figure("latency_ns", kLinkNs)};
    link.finish();
    return result;
  }

  void read_sources(Device& d) {
    const Json& sources = fields_.get("sources");
    const Fields checked(sources, fields_.at("sources"));
    if (sources.size() > kMaxList)
      refuse(fields_.at("sources"), "there are too many sources", fmt::format("at most {}", kMaxList));
    for (const auto& [key, text] : sources.items())
      d.sources.push_back({Fields::text_of(key, fields_.at("sources")), Fields::text_of(text, checked.at(key))});
  }

  // {"source": "me", "ops": [["aten.mm.default(...){}", 1200, 30, "matmul float32 ..."], ...]}: nanoseconds, their
  // spread, and, when it is known, what was asked of the device.
  void read_measured(Device& d) {
    const Json* measured = fields_.find("measured");
    if (measured == nullptr) return;
    Fields table(*measured, fields_.at("measured"));
    d.measured_source = table.text("source");
    d.measured_place = table.at("ops");
    const Json& rows = table.get("ops");
    table.finish();
    if (!rows.is_array() || rows.size() > kMaxMeasured)
      refuse(table.at("ops"), "the value is of the wrong kind",
             fmt::format("a list of at most {} measured ops", kMaxMeasured), shown(rows));
    std::set<std::string_view> keys;
    d.measured.reserve(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Json& row = rows[i];
      const std::string place = table.at(fmt::format("ops[{}]", i));
      if (!row.is_array() || row.size() < 3 || row.size() > 4)
        refuse(place, "the row is malformed",
               "[\"key of an op\", nanoseconds, spread in nanoseconds], or the same with the op's work", shown(row));
      d.measured.push_back({Fields::text_of(row[0], place, kMaxKeyBytes), kPsPerNs * nanoseconds(row[1], place),
                            kPsPerNs * nanoseconds(row[2], place)});
      if (row.size() == 4) d.measured.back().work = Fields::text_of(row[3], place, kMaxWorkBytes);
      if (!keys.insert(d.measured.back().key).second)
        refuse(place, "the op is listed twice", "each key once", shown(row[0]));
    }
  }

  static std::int64_t nanoseconds(const Json& value, const std::string& place) {
    const bool is_usable = value.is_number_unsigned() && value.get<std::uint64_t>() <= kMaxMeasuredNs;
    if (!is_usable)
      refuse(place, "the time cannot be used", fmt::format("whole nanoseconds from 0 to {}", kMaxMeasuredNs),
             shown(value));
    return value.get<std::int64_t>();
  }

  void check_sources(const Device& d) const {
    const auto check = [&](const Figure& figure, std::string_view field) {
      const bool is_there = std::any_of(d.sources.begin(), d.sources.end(),
                                        [&](const Source& source) { return source.key == figure.source; });
      if (!is_there)
        refuse(fields_.at(std::string(field)), "the figure names a source that is not listed", "a key of sources",
               shown(Json(figure.source)));
    };
    check(d.memory_bytes, "memory_bytes");
    check(d.bandwidth_bytes_per_s, "bandwidth_bytes_per_s");
    check(d.multiprocessors, "multiprocessors");
    check(d.l2_bytes, "l2_bytes");
    check(d.board_watts, "board_watts");
    check(d.launch_floor_ns, "launch_floor_ns");
    check(d.link.bytes_per_s, "link");
    check(d.link.latency_ns, "link");
    if (d.network) check(d.network->bytes_per_s, "network");
    if (d.network) check(d.network->latency_ns, "network");
    if (d.stream_permille) check(*d.stream_permille, "stream_permille");
    check(d.allocator_rounding_bytes, "allocator_rounding_bytes");
    check(d.overhead_bytes, "overhead_bytes");
    for (const auto& figure : d.peak_flops)
      if (figure) check(*figure, "peak_flops");
    for (const auto& figure : d.matrix_flops)
      if (figure) check(*figure, "matrix_flops");
    for (const auto& figure : d.achieved_permille)
      if (figure) check(*figure, "achieved_permille");
    if (!d.measured_source.empty()) check({0, d.measured_source}, "measured");
  }

  std::string name_;
  Fields fields_;
};

}  // namespace

const std::string& Device::source_text(std::string_view key) const {
  const auto found = std::find_if(sources.begin(), sources.end(), [&](const Source& s) { return s.key == key; });
  TIDEMARK_CHECK(found != sources.end(), "the source is listed");
  return found->text;
}

Device parse_device(std::string_view text, const std::string& name) {
  const Json json = parse_strict_json(text, name, "a device file", "docs/device_format.md has an example",
                                      {.max_bytes = kMaxDeviceFileBytes});
  return Reader(json, name).run();
}

Device read_device(const std::string& path) { return parse_device(read_small_file(path, kMaxDeviceFileBytes), path); }

}  // namespace tidemark::device
