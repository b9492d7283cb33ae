#include "words.h"

#include <nanobind/stl/string_view.h>

namespace nb = nanobind;

namespace tidemark::python {

using namespace step;

std::string text_of(const FieldPlace& place) {
  return std::string(place.table) + "[" + std::to_string(place.row) + "]." + place.field;
}

void fail_value(const FieldPlace& place, std::string expected, std::string got) {
  throw Error({.kind = ErrorKind::kInput,
               .place = text_of(place),
               .problem = "the value does not fit",
               .expected = std::move(expected),
               .got = std::move(got),
               .remedy = {}});
}

void fail_word(std::string place, const std::string& words, std::string_view got) {
  throw Error({.kind = ErrorKind::kInput,
               .place = std::move(place),
               .problem = "the word is unknown",
               .expected = "one of " + words,
               .got = "\"" + std::string(got) + "\"",
               .remedy = {}});
}

DType dtype_from_word(std::string_view word, const FieldPlace& place) {
  const auto dtype = dtype_from_name(word);
  if (dtype) return *dtype;
  std::array<std::string_view, kDTypeCount> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = name_of(static_cast<DType>(i));
  fail_word(text_of(place), join_words(names), word);
}

namespace {

OpFlag flag_from_word(std::string_view word, const FieldPlace& place) {
  for (const OpFlagName& entry : kOpFlagNames)
    if (entry.name == word) return entry.flag;
  std::array<std::string_view, kOpFlagNames.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kOpFlagNames[i].name;
  fail_word(text_of(place), join_words(names), word);
}

}  // namespace

OpFlags flags_from_words(const nb::iterable& words, const FieldPlace& place) {
  OpFlags flags;
  for (const nb::handle word : words) flags = flags | flag_from_word(nb::cast<std::string_view>(nb::str(word)), place);
  return flags;
}

}  // namespace tidemark::python
