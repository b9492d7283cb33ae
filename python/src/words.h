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
inline std::string text_of(const char* argument) { return argument; }

// A value that its field cannot have.
[[noreturn]] void fail_value(const FieldPlace& place, std::string expected, std::string got);

[[noreturn]] void fail_word(std::string place, const std::string& words, std::string_view got);

// "forward, loss, backward".
template <class Names>
std::string join_words(const Names& names) {
  std::string text;
  for (const std::string_view name : names) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

// The enum whose names are given in its order. `place` is a FieldPlace, or the name of an argument.
// Throws: Error that names `place` and lists the words there are.
template <class Enum, std::size_t N, class Place>
Enum from_word(std::string_view word, const std::array<std::string_view, N>& names, const Place& place) {
  const auto value = step::from_name<Enum>(word, names);
  if (!value) fail_word(text_of(place), join_words(names), word);
  return *value;
}

// The same for words that stand for some values only.
template <class Value>
struct Word {
  std::string_view word;
  Value value;
};
template <class Value, std::size_t N>
Value from_word(std::string_view word, const Word<Value> (&words)[N], const char* argument) {
  std::array<std::string_view, N> names;
  for (std::size_t i = 0; i < N; ++i) {
    if (words[i].word == word) return words[i].value;
    names[i] = words[i].word;
  }
  fail_word(argument, join_words(names), word);
}

step::DType dtype_from_word(std::string_view word, const FieldPlace& place);
step::OpFlags flags_from_words(const nanobind::iterable& words, const FieldPlace& place);

}  // namespace tidemark::python
