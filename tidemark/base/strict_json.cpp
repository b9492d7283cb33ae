#include "tidemark/base/strict_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "tidemark/base/error.h"

namespace tidemark {

using Json = nlohmann::json;

std::string shown_in_error(const Json& value) {
  constexpr std::size_t kLongest = 60;
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest - 3) + "...";
  return text;
}

Json parse_strict_json(std::string_view text, const std::string& name, const std::string& kind,
                       const std::string& remedy, const JsonLimits& limits) {
  const auto refuse = [&](ErrorKind error, std::string problem, std::string expected, std::string got = {}) {
    throw Error({.kind = error,
                 .place = name,
                 .problem = std::move(problem),
                 .expected = std::move(expected),
                 .got = std::move(got),
                 .remedy = remedy});
  };
  if (text.size() > limits.max_bytes)
    refuse(ErrorKind::kLimit, "the file is too large", fmt::format("at most {} bytes", limits.max_bytes),
           fmt::format("{}", text.size()));
  std::vector<std::set<std::string>> keys;
  const Json::parser_callback_t watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > limits.max_depth)
      refuse(ErrorKind::kLimit, "the file is nested too deeply", fmt::format("at most {} levels", limits.max_depth));
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      refuse(ErrorKind::kInput, "a key stands twice", "each key once", shown_in_error(parsed));
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::parse_error& error) {
    refuse(ErrorKind::kInput, "the file is not valid JSON", kind, fmt::format("something else at byte {}", error.byte));
  } catch (const Json::out_of_range&) {
    refuse(ErrorKind::kInput, "a number is too large", "numbers that a double can hold");
  }
  return {};
}

}  // namespace tidemark
