#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "tidemark/base/error.h"
#include "tidemark/step/dtype.h"
#include "tidemark/step/kinds.h"

// Turns the words that Python passes into the enums they stand for, as the reader of files does.

namespace tidemark::python {

// The field of a row that is about to be added, for errors: "passes[2].kind".
struct FieldPlace {
  const char* table;
  std::size_t row;
  const char* field;
};
std::string text_of(const FieldPlace& place);

// A value that its field cannot have.
[[noreturn]] void fail_value(const FieldPlace& place, std::string expected, std::string got);

[[noreturn]] void fail_word(const FieldPlace& place, const std::string& words, std::string_view got);

// "forward, loss, backward".
template <class Names>
std::string join_words(const Names& names) {
  std::string text;
  for (const std::string_view name : names) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

// Throws: Error that names `place` and lists the words there are.
template <class Enum, std::size_t N>
Enum from_word(std::string_view word, const std::array<std::string_view, N>& names, const FieldPlace& place) {
  const auto value = step::from_name<Enum>(word, names);
  if (!value) fail_word(place, join_words(names), word);
  return *value;
}
step::DType dtype_from_word(std::string_view word, const FieldPlace& place);
step::OpFlags flags_from_words(const nanobind::iterable& words, const FieldPlace& place);

}  // namespace tidemark::python
