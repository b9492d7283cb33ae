#include "tidemark/step/json_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "tidemark/base/error.h"
#include "tidemark/base/utf8.h"

namespace tidemark::step {

namespace {

constexpr std::size_t kMaxJsonDepth = 16;

// The part of the JSON library's message that a person needs. It looks like
//   [json.exception.parse_error.101] parse error at line 1, column 9: syntax error while parsing value - invalid
//   string: ill-formed UTF-8 byte; last read: '"...'
// where the end is left out because it holds the bytes that are wrong, or
//   [json.exception.out_of_range.406] number overflow parsing '1e400'
std::string reason_of(std::string_view text) {
  text = text.substr(std::min(text.find("] "), text.size() - 2) + 2);
  text = text.substr(0, text.find("; last read: "));
  const auto column = text.find("column ");
  const auto dash = text.find(" - ");
  if (column != text.npos && dash != text.npos)
    return fmt::format("{}: {}", text.substr(column, text.find(':', column) - column), text.substr(dash + 3));
  constexpr std::size_t kShownBytes = 80;
  return text.size() <= kShownBytes ? std::string(text) : fmt::format("{}...", text.substr(0, kShownBytes));
}

}  // namespace

// Receives the JSON library's events. Returning false stops the parser; `error` then says why.
struct JsonRowSax {
  using Kind = JsonRow::Kind;

  JsonRow& row;
  std::size_t depth = 0;
  std::string error = {};
  // Of the objects that are open. Not hashed: a file could choose keys that collide.
  std::vector<std::set<std::string>> keys = {};

  bool push(Kind kind) {
    row.tokens_.emplace_back().kind = kind;
    return true;
  }
  bool push_text(Kind kind, const std::string& text) {
    JsonRow::Token& token = row.tokens_.emplace_back();
    token.kind = kind;
    token.begin = row.texts_.size();
    token.length = static_cast<std::uint32_t>(text.size());
    row.texts_ += text;
    return true;
  }
  bool open(Kind kind) {
    if (++depth > kMaxJsonDepth) {
      error = fmt::format("the values are nested too deep (more than {} levels)", kMaxJsonDepth);
      return false;
    }
    return push(kind);
  }

  bool null() { return push(Kind::kNull); }
  bool boolean(bool value) {
    JsonRow::Token& token = row.tokens_.emplace_back();
    token.kind = Kind::kBool;
    token.integer = value ? 1 : 0;
    return true;
  }
  bool number_integer(std::int64_t value) {
    JsonRow::Token& token = row.tokens_.emplace_back();
    token.kind = Kind::kInteger;
    token.integer = value;
    return true;
  }
  bool number_unsigned(std::uint64_t value) {
    if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) [[likely]]
      return number_integer(static_cast<std::int64_t>(value));
    return push_text(Kind::kHugeInteger, fmt::format("{}", value));
  }
  bool number_float(double value, const std::string& text) {
    if (text.find_first_of(".eE") == text.npos) return push_text(Kind::kHugeInteger, text);
    JsonRow::Token& token = row.tokens_.emplace_back();
    token.kind = Kind::kFloat;
    token.number = value;
    return true;
  }
  bool string(const std::string& text) { return push_text(Kind::kString, text); }
  bool binary(std::vector<std::uint8_t>&) { return false; }
  bool start_array(std::size_t) { return open(Kind::kBeginArray); }
  bool end_array() {
    --depth;
    return push(Kind::kEndArray);
  }
  bool start_object(std::size_t) {
    keys.emplace_back();
    return open(Kind::kBeginObject);
  }
  bool end_object() {
    keys.pop_back();
    --depth;
    return push(Kind::kEndObject);
  }
  bool key(const std::string& text) {
    if (!keys.back().insert(text).second) {
      error = fmt::format("the key {} stands twice in one object", quote(text));
      return false;
    }
    return push_text(Kind::kKey, text);
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& e) {
    error = fmt::format("the line is not valid JSON ({})", reason_of(e.what()));
    return false;
  }
};

void JsonRow::parse(std::string_view line) {
  tokens_.clear();
  texts_.clear();
  at_ = 0;
  // The JSON library would skip the first and take the second for the end of the text.
  if (line.starts_with("\xEF\xBB\xBF")) fail("", "the line starts with a byte order mark", "JSON without it", {});
  if (std::memchr(line.data(), '\0', line.size()) != nullptr)
    fail("", "the line has a zero byte in it", "JSON in UTF-8", {});
  JsonRowSax sax{.row = *this};
  if (!nlohmann::json::sax_parse(line.data(), line.data() + line.size(), &sax)) fail("", sax.error, {}, {});
  tokens_.emplace_back();
}

const JsonRow::Token& JsonRow::take(Kind kind, std::string_view field, const char* expected) {
  const Token& token = tokens_[at_];
  if (token.kind != kind) [[unlikely]]
    fail_expecting(field, expected);
  ++at_;
  return token;
}

void JsonRow::begin_array(std::string_view field) { take(Kind::kBeginArray, field, "a list"); }

void JsonRow::end_array(std::string_view field) {
  if (peek().kind == Kind::kEndArray) [[likely]] {
    ++at_;
    return;
  }
  fail(field, "the list has too many values", "its end", describe(peek()));
}

bool JsonRow::at_array_end() const { return peek().kind == Kind::kEndArray; }
void JsonRow::begin_object(std::string_view field) { take(Kind::kBeginObject, field, "an object"); }

std::optional<std::string_view> JsonRow::next_key() {
  if (peek().kind == Kind::kEndObject) {
    ++at_;
    return std::nullopt;
  }
  return text_of(take(Kind::kKey, "", "a key"));
}

void JsonRow::end_row() { take(Kind::kEnd, "", "the end of the row"); }

bool JsonRow::is_null() const { return peek().kind == Kind::kNull; }
bool JsonRow::is_array() const { return peek().kind == Kind::kBeginArray; }
bool JsonRow::is_object() const { return peek().kind == Kind::kBeginObject; }
bool JsonRow::is_object_starting_with(std::string_view key) const {
  return is_object() && tokens_[at_ + 1].kind == Kind::kKey && text_of(tokens_[at_ + 1]) == key;
}
bool JsonRow::is_string() const { return peek().kind == Kind::kString; }
bool JsonRow::is_bool() const { return peek().kind == Kind::kBool; }
bool JsonRow::is_integer() const { return peek().kind == Kind::kInteger; }

void JsonRow::null(std::string_view field) { take(Kind::kNull, field, "null"); }
bool JsonRow::boolean(std::string_view field) { return take(Kind::kBool, field, "true or false").integer != 0; }
std::string_view JsonRow::string(std::string_view field) { return text_of(take(Kind::kString, field, "a string")); }

double JsonRow::number(std::string_view field) {
  if (peek().kind == Kind::kInteger) return static_cast<double>(take(Kind::kInteger, field, "").integer);
  return take(Kind::kFloat, field, "a number; beyond 2^63 as a float, such as 1e20").number;
}

std::int64_t JsonRow::integer(std::string_view field, std::int64_t low, std::int64_t high) {
  const bool is_id = low == 0 && high == kLargestId;
  const Token& token = take(Kind::kInteger, field, is_id ? "an id" : "a whole number below 2^63");
  if (token.integer < low || token.integer > high) [[unlikely]]
    fail(field, "a number is out of range", is_id ? "an id" : fmt::format("{} to {}", low, high), describe(token));
  return token.integer;
}

std::uint32_t JsonRow::integer32(std::string_view field) {
  return static_cast<std::uint32_t>(integer(field, 0, std::numeric_limits<std::uint32_t>::max()));
}

std::string JsonRow::describe(const Token& token) const {
  switch (token.kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return token.integer != 0 ? "true" : "false";
    case Kind::kInteger:
      return fmt::format("{}", token.integer);
    case Kind::kHugeInteger:
      return fmt::format("{:.40}", text_of(token));
    case Kind::kFloat:
      return fmt::format("{:#}", token.number);
    case Kind::kString:
    case Kind::kKey:
      return quote(text_of(token));
    case Kind::kBeginArray:
      return "a list";
    case Kind::kEndArray:
      return "the end of the list";
    case Kind::kBeginObject:
      return "an object";
    case Kind::kEndObject:
      return "the end of the object";
    case Kind::kEnd:
      return "the end of the row";
  }
  return {};
}

void JsonRow::fail(std::string_view field, std::string problem, std::string expected, std::string got) const {
  throw Error({.kind = ErrorKind::kInput,
               .place = place_(field),
               .problem = std::move(problem),
               .expected = std::move(expected),
               .got = std::move(got),
               .remedy = {}});
}

void JsonRow::fail_expecting(std::string_view field, std::string expected) const {
  const char* problem = peek().kind == Kind::kEndArray      ? "the row has too few values"
                        : peek().kind == Kind::kHugeInteger ? "the number does not fit 64 bits"
                                                            : "the value has the wrong kind";
  fail(field, problem, std::move(expected), describe(peek()));
}

}  // namespace tidemark::step
