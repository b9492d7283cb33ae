#include "tidemark/sac/module_info_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "tidemark/base/byte_source.h"
#include "tidemark/base/error.h"
#include "tidemark/base/strict_json.h"

namespace tidemark::sac {

namespace {

using Json = nlohmann::ordered_json;
using ReadJson = nlohmann::json;

constexpr JsonLimits kLimits = {.max_bytes = std::size_t{64} << 20, .max_depth = 8};
constexpr const char* kKind = "the statistics of a model's modules";
constexpr const char* kRemedy = "tidemark sac STEP --export FILE writes one";

// The keys of the reference, with the field each of them is.
struct IntegerKey {
  const char* key;
  std::int64_t ModuleStats::*field;
};
constexpr IntegerKey kIntegers[] = {
    {"param_per_module", &ModuleStats::parameter_bytes},
    {"grad_per_module", &ModuleStats::gradient_bytes},
    {"grad_total", &ModuleStats::gradients_before_bytes},
    {"act_fw_per_module", &ModuleStats::kept_bytes},
    {"act_bw_per_module", &ModuleStats::backward_activation_bytes},
    {"act_grad_per_module", &ModuleStats::activation_gradient_bytes},
    {"act_total", &ModuleStats::activations_after_bytes},
    {"input_per_module", &ModuleStats::input_bytes},
    {"output_per_module", &ModuleStats::output_bytes},
    {"sac_memory", &ModuleStats::sac_bytes},
};
struct TimeKey {
  const char* key;
  double ModuleStats::*field;
};
constexpr TimeKey kTimes[] = {
    {"fw_runtime_per_module", &ModuleStats::forward_ms},
    {"bw_runtime_per_module", &ModuleStats::backward_ms},
    {"sac_runtime", &ModuleStats::sac_ms},
};

[[noreturn]] void refuse(std::string place, std::string problem, std::string expected, const ReadJson* got = nullptr) {
  throw Error({.kind = ErrorKind::kInput,
               .place = std::move(place),
               .problem = std::move(problem),
               .expected = std::move(expected),
               .got = got == nullptr ? "" : shown_in_error(*got),
               .remedy = kRemedy});
}

const ReadJson& member(const ReadJson& object, const char* key, const std::string& place) {
  if (!object.is_object()) refuse(place, "this is no object", "a JSON object", &object);
  const auto found = object.find(key);
  if (found == object.end()) refuse(fmt::format("{}: {}", place, key), "the key is missing", "the reference's keys");
  return *found;
}

std::int64_t integer(const ReadJson& object, const char* key, const std::string& place) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  const ReadJson& value = member(object, key, place);
  const bool is_small = value.is_number_unsigned() ? value.get<std::uint64_t>() <= kMost
                                                   : value.is_number_integer() && value.get<std::int64_t>() >= -kMost;
  if (!is_small) refuse(fmt::format("{}: {}", place, key), "this is no size", "a whole number below 2^60", &value);
  return value.get<std::int64_t>();
}

double number(const ReadJson& value, const std::string& place) {
  if (!value.is_number() || !std::isfinite(value.get<double>())) refuse(place, "this is no number", "a number", &value);
  return value.get<double>();
}

std::vector<double> numbers(const ReadJson& object, const char* key, const std::string& place) {
  const ReadJson& list = member(object, key, place);
  const std::string at = fmt::format("{}: {}", place, key);
  if (!list.is_array()) refuse(at, "this is no list", "a list of numbers", &list);
  std::vector<double> result;
  for (const ReadJson& value : list) result.push_back(number(value, at));
  return result;
}

std::string text(const ReadJson& value, const std::string& place) {
  if (!value.is_string() || value.get_ref<const std::string&>().empty())
    refuse(place, "this is no name", "the full name of a module", &value);
  return value.get<std::string>();
}

std::vector<std::string> names(const ReadJson& object, const char* key, const std::string& place) {
  const ReadJson& list = member(object, key, place);
  const std::string at = fmt::format("{}: {}", place, key);
  if (!list.is_array()) refuse(at, "this is no list", "a list of names", &list);
  std::vector<std::string> result;
  for (const ReadJson& value : list) result.push_back(text(value, at));
  return result;
}

std::vector<CurvePoint> curve(const ReadJson& object, const std::string& place) {
  const ReadJson& points = member(object, "tradeoff_curve", place);
  const std::string at = place + ": tradeoff_curve";
  if (!points.is_object()) refuse(at, "this is no object", "numbers by number", &points);
  std::vector<CurvePoint> result;
  for (const auto& [key, y] : points.items()) {
    CurvePoint point;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), point.x);
    if (error != std::errc() || end != key.data() + key.size() || !std::isfinite(point.x)) {
      const ReadJson shown = key;
      refuse(at, "a key is no number", "the part of the bytes that is given up", &shown);
    }
    point.y = number(y, at);
    result.push_back(point);
  }
  std::sort(result.begin(), result.end(), [](const CurvePoint& a, const CurvePoint& b) { return a.x < b.x; });
  return result;
}

ModuleStats read_stats(const ReadJson& json, const std::string& list_place) {
  ModuleStats stats;
  stats.fqn = text(member(json, "fqn", list_place), list_place + ": fqn");
  const std::string place = list_place + " (" + shown_in_error(json["fqn"]) + ")";
  for (const IntegerKey& key : kIntegers) stats.*key.field = integer(json, key.key, place);
  for (const TimeKey& key : kTimes)
    stats.*key.field = number(member(json, key.key, place), fmt::format("{}: {}", place, key.key));
  const ReadJson& is_leaf = member(json, "is_leaf", place);
  if (!is_leaf.is_boolean()) refuse(place + ": is_leaf", "this is neither true nor false", "true or false", &is_leaf);
  stats.is_leaf = is_leaf.get<bool>();
  PiecewiseLine& fit = stats.trade_off.fit;
  fit.slopes = numbers(json, "slopes", place);
  fit.intercepts = numbers(json, "intercepts", place);
  fit.breaks = numbers(json, "breakpoints", place);
  const std::int64_t pieces = integer(json, "n_segments", place);
  const bool fits = fit.slopes.size() == fit.intercepts.size() && std::cmp_equal(pieces, fit.slopes.size()) &&
                    fit.breaks.size() == (pieces == 0 ? 0 : fit.slopes.size() + 1);
  if (!fits) refuse(place + ": n_segments", "slopes, intercepts and breakpoints do not fit the number of pieces", {});
  stats.trade_off.curve = curve(json, place);
  return stats;
}

Json stats_json(const ModuleStats& stats) {
  Json json = {{"fqn", stats.fqn}};
  for (const IntegerKey& key : kIntegers) json[key.key] = stats.*key.field;
  for (const TimeKey& key : kTimes) json[key.key] = stats.*key.field;
  json["is_leaf"] = stats.is_leaf;
  const PiecewiseLine& fit = stats.trade_off.fit;
  json["n_segments"] = fit.slopes.size();
  json["slopes"] = fit.slopes;
  json["intercepts"] = fit.intercepts;
  json["breakpoints"] = fit.breaks;
  json["tradeoff_curve"] = Json::object();
  for (const CurvePoint& point : stats.trade_off.curve) json["tradeoff_curve"][fmt::format("{}", point.x)] = point.y;
  return json;
}

}  // namespace

std::string module_info_json(const ModuleInfo& info) {
  Json json;
  json["mod_order"] = {{"fw_pre_order", info.order.forward_pre},
                       {"bw_pre_order", info.order.backward_pre},
                       {"fw_post_order", info.order.forward_post},
                       {"bw_post_order", info.order.backward_post}};
  json["mod_stats"] = Json::array();
  for (const ModuleStats& stats : info.modules) json["mod_stats"].push_back(stats_json(stats));
  return json.dump(1) + "\n";
}

ModuleInfo parse_module_info(std::string_view json_text, const std::string& name) {
  const ReadJson json = parse_strict_json(json_text, name, kKind, kRemedy, kLimits);
  ModuleInfo info;
  const ReadJson& order = member(json, "mod_order", name);
  const std::string place = name + ": mod_order";
  info.order.forward_pre = names(order, "fw_pre_order", place);
  info.order.backward_pre = names(order, "bw_pre_order", place);
  info.order.forward_post = names(order, "fw_post_order", place);
  info.order.backward_post = names(order, "bw_post_order", place);
  const ReadJson& list = member(json, "mod_stats", name);
  if (!list.is_array()) refuse(name + ": mod_stats", "this is no list", "a list of modules", &list);
  for (std::size_t i = 0; i < list.size(); ++i)
    info.modules.push_back(read_stats(list[i], fmt::format("{}: mod_stats[{}]", name, i)));
  return info;
}

ModuleInfo read_module_info(const std::string& path) {
  return parse_module_info(read_small_file(path, kLimits.max_bytes), path);
}

}  // namespace tidemark::sac
