#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace tidemark {

struct JsonLimits {
  std::size_t max_bytes = std::size_t{1} << 20;
  int max_depth = 8;
};

// A whole JSON text of a documented kind of file, with what the JSON library lets pass refused: keys that stand twice,
// deep nesting, bytes that are no UTF-8. `name` stands for the file in errors, `kind` is what was expected ("a device
// file") and `remedy` where to look.
// Throws: Error (input).
nlohmann::json parse_strict_json(std::string_view text, const std::string& name, const std::string& kind,
                                 const std::string& remedy, const JsonLimits& limits = {});

// A value as it is shown in an error: one line of ASCII, cut when long.
std::string shown_in_error(const nlohmann::json& value);

}  // namespace tidemark
