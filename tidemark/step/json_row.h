#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/base/id.h"

namespace tidemark::step {

// One line of JSON as a flat list of tokens, read from front to back by a decoder that knows what it expects.
// Every reading function names the field it reads, and what it does not find is an Error with that field, so that
// the decoder itself is plain. JSON's own rules, duplicate keys and depth are checked while the line is split.
class JsonRow {
 public:
  // Says where the row stands, for errors; called only when there is one.
  using Place = std::function<std::string(std::string_view field)>;

  explicit JsonRow(Place place) : place_(std::move(place)) {}

  // Splits `line`; reading starts at its first token. Throws: Error when it is not one JSON value.
  void parse(std::string_view line);

  void begin_array(std::string_view field);
  void end_array(std::string_view field);
  bool at_array_end() const;  // the next token closes the array
  void begin_object(std::string_view field);
  std::optional<std::string_view> next_key();  // nothing when the object ends, which is then read
  void end_row();                              // nothing may follow

  bool is_null() const;
  bool is_array() const;
  bool is_object() const;
  bool is_object_starting_with(std::string_view key) const;
  bool is_string() const;
  bool is_bool() const;
  bool is_integer() const;

  void null(std::string_view field);
  bool boolean(std::string_view field);
  std::string_view string(std::string_view field);
  double number(std::string_view field);
  std::int64_t integer(std::string_view field, std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t high = std::numeric_limits<std::int64_t>::max());
  std::uint32_t integer32(std::string_view field);

  template <class IdType>
  IdType id(std::string_view field) {
    return IdType(static_cast<std::uint32_t>(integer(field, 0, kLargestId)));
  }
  template <class IdType>
  IdType id_or_null(std::string_view field) {
    if (!is_null()) return id<IdType>(field);
    null(field);
    return IdType();
  }

  [[noreturn]] void fail(std::string_view field, std::string problem, std::string expected, std::string got) const;
  // The same, with the next token as what came.
  [[noreturn]] void fail_expecting(std::string_view field, std::string expected) const;

 private:
  friend struct JsonRowSax;

  enum class Kind : std::uint8_t {
    kNull,
    kBool,
    kInteger,
    kHugeInteger,  // digits that do not fit 64 bits, kept as text
    kFloat,
    kString,
    kKey,
    kBeginArray,
    kEndArray,
    kBeginObject,
    kEndObject,
    kEnd,  // of the row
  };
  struct Token {
    Kind kind = Kind::kEnd;
    std::uint32_t length = 0;  // of a text
    union {
      std::int64_t integer = 0;
      double number;
      std::uint64_t begin;  // of a text, in texts_
    };
  };

  static constexpr std::int64_t kLargestId = 0xFFFFFFFE;

  const Token& peek() const { return tokens_[at_]; }
  const Token& take(Kind kind, std::string_view field, const char* expected);
  std::string_view text_of(const Token& token) const {
    return std::string_view(texts_).substr(token.begin, token.length);
  }
  std::string describe(const Token& token) const;

  Place place_;
  std::vector<Token> tokens_;
  std::string texts_;
  std::size_t at_ = 0;
};

}  // namespace tidemark::step
