#include "tidemark/base/utf8.h"

#include <fmt/format.h>

namespace tidemark {

namespace {

// The length of the sequence that `lead` starts and the allowed range of its second byte (Unicode, table 3-7);
// length 0 when nothing may start with it.
struct Sequence {
  std::size_t length;
  unsigned char low;
  unsigned char high;
};

Sequence sequence_of(unsigned char lead) {
  if (lead < 0x80) return {1, 0, 0};
  if (lead < 0xC2) return {0, 0, 0};
  if (lead < 0xE0) return {2, 0x80, 0xBF};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead < 0xF0) return {3, 0x80, 0xBF};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead < 0xF4) return {4, 0x80, 0xBF};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// The length of the well-formed character that `text` starts with; 0 when there is none.
std::size_t character_bytes(std::string_view text) {
  const Sequence s = sequence_of(static_cast<unsigned char>(text.front()));
  if (s.length == 0 || text.size() < s.length) return 0;
  for (std::size_t k = 1; k < s.length; ++k) {
    const auto byte = static_cast<unsigned char>(text[k]);
    if (byte < (k == 1 ? s.low : 0x80) || byte > (k == 1 ? s.high : 0xBF)) return 0;
  }
  return s.length;
}

// `character` is empty for a stray byte, which is then `first`.
void append_printable(std::string_view character, unsigned char first, std::string& out) {
  if (character.empty())
    out += fmt::format("\\x{:02x}", first);
  else if (first == '\n')
    out += "\\n";
  else if (first == '"' || first == '\\')
    out += {'\\', static_cast<char>(first)};
  else if (first < 0x20 || first == 0x7F)
    out += fmt::format("\\u{:04x}", first);
  else if (first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0)  // U+0080 to U+009F: controls too
    out += fmt::format("\\u{:04x}", static_cast<unsigned char>(character[1]));
  else
    out += character;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = character_bytes(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string quote(std::string_view text, std::size_t shown_bytes) {
  std::string out = "\"";
  std::size_t shown = 0;
  while (!text.empty()) {
    const std::size_t length = character_bytes(text);
    shown += length == 0 ? 1 : length;
    if (shown > shown_bytes) {
      out += "...";
      break;
    }
    append_printable(text.substr(0, length), static_cast<unsigned char>(text.front()), out);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + '"';
}

}  // namespace tidemark
