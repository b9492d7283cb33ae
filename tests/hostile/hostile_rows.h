#pragma once

#include <span>
#include <string_view>

namespace tidemark::test {

// What the reader must answer to one file of tests/hostile/data: "[<file>, <place>] <message>".
struct HostileRow {
  std::string_view file;
  std::string_view place;  // empty when there is none but the file
  std::string_view message;
};

std::span<const HostileRow> hostile_rows();

}  // namespace tidemark::test
