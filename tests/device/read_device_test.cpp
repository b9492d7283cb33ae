// A device file is read as it stands, or refused with the field that is wrong.

#include "tidemark/device/read_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tidemark/base/error.h"

namespace tidemark::device {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

Json valid() {
  return Json::parse(R"({
    "tidemark": "device", "version": [1, 0], "name": "my-card", "title": "My card", "aliases": ["mine"],
    "kind": "cuda", "generation": "8.6", "memory_type": "gddr",
    "memory_bytes": [24000000000, "s"], "bandwidth_bytes_per_s": [936000000000, "s"], "multiprocessors": [82, "s"],
    "l2_bytes": [6291456, "s"], "board_watts": [200, "s"],
    "peak_flops": {"float32": [35600000000000, "s"]}, "achieved_permille": {"float32": [720, "m"]},
    "launch_floor_ns": [10000, "m"], "link": {"kind": "pcie4", "bytes_per_s": [32000000000, "s"], "latency_ns": [5000, "m"]},
    "allocator_rounding_bytes": [512, "s"], "overhead_bytes": [0, "m"],
    "sources": {"m": "measured", "s": "the sheet"}})");
}

std::string error_of(const std::string& text) {
  try {
    parse_device(text, "card.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

std::string error_with(const std::string& pointer, const Json& value) {
  Json json = valid();
  json[Json::json_pointer(pointer)] = value;
  return error_of(json.dump());
}

std::string error_without(const std::string& key) {
  Json json = valid();
  json.erase(key);
  return error_of(json.dump());
}

TEST(ReadDevice, ReadsMeasuredOps) {
  Json json = valid();
  json["measured"] = {{"source", "m"}, {"ops", {{"aten.mm.default(){}", 1200, 30}}}};
  const Device d = parse_device(json.dump());
  EXPECT_EQ(d.measured, (std::vector<MeasuredOp>{{"aten.mm.default(){}", 1'200'000, 30'000}}));  // picoseconds
  EXPECT_EQ(d.measured_source, "m");
  json["measured"]["ops"].push_back({"aten.mm.default(b){}", 1200, 30, "matmul float32 m2"});
  const Device more = parse_device(json.dump(), "card.json");
  EXPECT_EQ(more.measured[0].work, "");
  EXPECT_EQ(more.measured[1].work, "matmul float32 m2");
  EXPECT_EQ(more.measured_place, "card.json: measured: ops");
  EXPECT_TRUE(parse_device(valid().dump()).measured.empty());
}

TEST(ReadDevice, RefusesMeasuredOpsThatMakeNoSense) {
  const auto error_of_rows = [](const Json& rows) { return error_with("/measured", {{"source", "m"}, {"ops", rows}}); };
  EXPECT_THAT(error_of_rows({{"a", 1, 1}, {"a", 2, 1}}),
              HasSubstr("[card.json: measured: ops[1]] the op is listed twice"));
  EXPECT_THAT(error_of_rows({{"a", -1, 1}}), HasSubstr("the time cannot be used"));
  EXPECT_THAT(error_of_rows({{"a", 1.5, 1}}), HasSubstr("the time cannot be used"));
  EXPECT_THAT(error_of_rows(Json::array({Json::array({"a", 1})})), HasSubstr("the row is malformed"));
  EXPECT_THAT(error_of_rows({{"a", 1, 1, "free float32", 1}}), HasSubstr("the row is malformed"));
  EXPECT_THAT(error_of_rows({{"", 1, 1}}), HasSubstr("the text cannot be used"));
  EXPECT_THAT(error_of_rows({{"a", 1, 1, ""}}), HasSubstr("ops[0]] the text cannot be used"));
  EXPECT_THAT(error_of_rows({{"a", 1, 1, "free\n"}}), HasSubstr("ops[0]] the text cannot be used"));
  EXPECT_THAT(error_of_rows({{"a", 1, 1, std::string(401, 'x')}}), HasSubstr("1 to 400 bytes of UTF-8"));
  EXPECT_THAT(error_of_rows({{"a", 1, 1, 5}}), HasSubstr("ops[0]] the value is of the wrong kind; expected a text"));
  EXPECT_THAT(error_of_rows({{"a", 1, 1, nullptr}}), HasSubstr("the value is of the wrong kind"));
  EXPECT_THAT(error_of_rows("all"), HasSubstr("a list of at most"));
  EXPECT_THAT(error_with("/measured", {{"source", "nobody"}, {"ops", Json::array()}}), HasSubstr("a key of sources"));
}

TEST(ReadDevice, ReadsEveryField) {
  const Device d = parse_device(valid().dump());
  EXPECT_EQ(d.name, "my-card");
  EXPECT_EQ(d.aliases, std::vector<std::string>{"mine"});
  EXPECT_EQ(d.kind, DeviceKind::kCuda);
  EXPECT_EQ(d.memory_type, MemoryType::kGddr);
  EXPECT_EQ(d.memory_bytes, (Figure{24'000'000'000, "s"}));
  EXPECT_EQ(d.peak(Precision::kFloat32), (Figure{35'600'000'000'000, "s"}));
  EXPECT_FALSE(d.peak(Precision::kBFloat16));
  EXPECT_EQ(d.link, (Link{"pcie4", {32'000'000'000, "s"}, {5000, "m"}}));
  EXPECT_EQ(d.source_text("m"), "measured");
}

TEST(ReadDevice, OnlyAliasesAndAchievedMayBeLeftOut) {
  const Json json = valid();
  for (const auto& [key, value] : json.items()) {
    const bool may = key == "aliases" || key == "achieved_permille";
    EXPECT_EQ(error_without(key),
              may ? "accepted"
                  : "[card.json: " + key + "] the field is missing; expected the fields of docs/device_format.md");
  }
}

TEST(ReadDevice, RefusesFiguresWithoutSourceOrSense) {
  EXPECT_EQ(
      error_with("/memory_bytes", 5),
      R"([card.json: memory_bytes] the value is of the wrong kind; expected [number, "source"]: every figure has its source, got 5)");
  EXPECT_THAT(error_with("/memory_bytes", {0, "s"}),
              HasSubstr("out of range; expected a whole number of bytes from 1000000 to"));
  EXPECT_THAT(error_with("/memory_bytes", {-1, "s"}), HasSubstr("memory_bytes] the number is out of range"));
  EXPECT_THAT(error_with("/memory_bytes", {1.5, "s"}), HasSubstr("memory_bytes] the number cannot be used"));
  EXPECT_THAT(error_with("/memory_bytes", {18446744073709551615u, "s"}), HasSubstr("the number cannot be used"));
  EXPECT_THAT(error_with("/memory_bytes", {1000000, "nobody"}), HasSubstr("names a source that is not listed"));
  EXPECT_THAT(error_with("/link/latency_ns", {1, "nobody"}), HasSubstr("link] the figure names a source"));
  EXPECT_THAT(error_with("/peak_flops", Json::object()), HasSubstr("there is no figure for float32"));
  EXPECT_THAT(error_with("/peak_flops/float99", {1, "s"}), HasSubstr("float99] the precision is unknown"));
  EXPECT_THAT(error_with("/achieved_permille/float32", {5000, "s"}), HasSubstr("from 1 to 2000, got 5000"));
  EXPECT_THAT(error_with("/achieved_permille/float16", {500, "s"}),
              HasSubstr("achieved_permille] float16 has no peak that this could be a part of"));
  EXPECT_THAT(error_with("/kind", "tpu"), HasSubstr(R"(one of cuda, rocm, cpu, got "tpu")"));
  EXPECT_THAT(error_with("/name", "My Card"), HasSubstr("the name cannot be used"));
  EXPECT_THAT(error_with("/title", ""), HasSubstr("the text cannot be used"));
  EXPECT_THAT(error_with("/title", "a\nb"), HasSubstr("the text cannot be used"));
  EXPECT_THAT(error_with("/aliases", "mine"), HasSubstr("a list of at most 64 texts"));
  EXPECT_THAT(error_with("/memory_byte", {1, "s"}), HasSubstr("memory_byte] the field is unknown"));
  EXPECT_THAT(error_with("/link/speed", 1), HasSubstr("speed] the field is unknown"));
  EXPECT_THAT(error_with("/version", {2, 0}), HasSubstr("the version is not known"));
  EXPECT_THAT(error_with("/version", "1.0"), HasSubstr("the version is malformed"));
  EXPECT_THAT(error_with("/tidemark", "step"), HasSubstr("this is another kind of file"));
}

TEST(ReadDevice, RefusesWhatIsNoProperJson) {
  EXPECT_THAT(error_of(""), HasSubstr("[card.json] the file is not valid JSON"));
  EXPECT_THAT(error_of("[]"), HasSubstr("this is no object"));
  EXPECT_THAT(error_of("{\"tidemark\":\"device\",\"tidemark\":\"device\"}"), HasSubstr("a key stands twice"));
  EXPECT_THAT(error_of(std::string(100000, '[')), HasSubstr("nested too deeply"));
  EXPECT_THAT(error_of(std::string(kMaxDeviceFileBytes + 1, ' ')), HasSubstr("the file is too large"));
  EXPECT_THAT(error_of("{\"tidemark\":\"\xff\"}"), HasSubstr("the file is not valid JSON"));
  EXPECT_THAT(error_of("{\"tidemark\":1e400}"), HasSubstr("card.json"));
}

// Figures in other units than the file's are noticed, with the unit and how to write it.
TEST(ReadDevice, UnitsAreChecked) {
  const std::string peak = error_with("/peak_flops/float32/0", 67);
  EXPECT_THAT(peak, HasSubstr("peak_flops: float32"));
  EXPECT_THAT(peak, HasSubstr("FLOP per second"));
  EXPECT_THAT(peak, HasSubstr("67 TFLOP/s are 67000000000000"));
  EXPECT_THAT(error_with("/bandwidth_bytes_per_s/0", 936), HasSubstr("bytes per second from 1000000000 to"));
  EXPECT_THAT(error_with("/memory_bytes/0", 24), HasSubstr("80 GB are 80000000000"));
  EXPECT_THAT(error_with("/link/bytes_per_s/0", 32), HasSubstr("450 GB/s are 450000000000"));
  EXPECT_THAT(error_with("/launch_floor_ns/0", 10'000'000'000), HasSubstr("10 us are 10000"));
}

TEST(ReadDevice, ANetworkAndAMeasuredStreamAreOptional) {
  Json json = valid();
  EXPECT_FALSE(parse_device(json.dump(), "card.json").network.has_value());
  json["network"] = Json::parse(R"({"kind": "roce", "bytes_per_s": [12500000000, "s"], "latency_ns": [9000, "m"]})");
  json["stream_permille"] = Json::parse(R"([920, "m"])");
  const Device device = parse_device(json.dump(), "card.json");
  EXPECT_EQ(device.network->bytes_per_s.value, 12'500'000'000);
  EXPECT_EQ(device.network->latency_ns.value, 9000);
  EXPECT_EQ(device.stream_permille->value, 920);
  json["network"]["bytes_per_s"][1] = "nobody";
  EXPECT_THAT(error_of(json.dump()), HasSubstr("network"));
}

// What is told apart by it must be known; other vendors have names.
TEST(ReadDevice, ACudaDeviceHasAComputeCapability) {
  for (const char* bad : {"hopper", "sm_90", "nan", "9", "9.", ".0", "9.0a", "900.0", "-9.0"})
    EXPECT_THAT(error_with("/generation", bad), HasSubstr("the compute capability cannot be read")) << bad;
  EXPECT_EQ(error_with("/generation", "12.1"), "accepted");
  Json json = valid();
  json["kind"] = "rocm";
  json["generation"] = "gfx942";
  EXPECT_EQ(error_of(json.dump()), "accepted");
}

TEST(ReadDevice, MatrixUnitsAreFasterOrLeftOut) {
  Json json = valid();
  json["matrix_flops"] = Json::parse(R"({"float32": [40000000000000, "s"]})");
  const Device device = parse_device(json.dump(), "card.json");
  EXPECT_EQ(device.product_peak(Precision::kFloat32)->value, 40'000'000'000'000);
  EXPECT_EQ(device.peak(Precision::kFloat32)->value, 35'600'000'000'000);
  EXPECT_EQ(parse_device(valid().dump(), "x").product_peak(Precision::kFloat32)->value, 35'600'000'000'000);
  json["matrix_flops"]["float32"][0] = 35'600'000'000'000;
  EXPECT_THAT(error_of(json.dump()), HasSubstr("the figure for float32 is not above that of peak_flops"));
  json["matrix_flops"] = Json::parse(R"({"float64": [40000000000000, "s"]})");  // which it does not have otherwise
  EXPECT_THAT(error_of(json.dump()), HasSubstr("the figure for float64 is not above"));
  json["matrix_flops"] = Json::parse(R"({"float32": [40000000000000, "nobody"]})");
  EXPECT_THAT(error_of(json.dump()), HasSubstr("matrix_flops"));
}

}  // namespace
}  // namespace tidemark::device
