#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tidemark/base/error.h"
#include "tidemark/base/utf8.h"

// A property that must hold for every input. A fuzzer finds what ends the program, so a broken one does.
#define FUZZ_CHECK(condition)                                                                 \
  do {                                                                                        \
    if (!(condition)) {                                                                       \
      std::fprintf(stderr, "%s:%d: FUZZ_CHECK(%s) failed\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                           \
    }                                                                                         \
  } while (false)

// What may be thrown at any input: an error about it that is fit for terminals, logs and Python strings.
inline void check_error(const tidemark::Error& error) {
  FUZZ_CHECK(error.info().kind == tidemark::ErrorKind::kInput || error.info().kind == tidemark::ErrorKind::kLimit);
  const std::string_view text = error.what();
  FUZZ_CHECK(!error.info().problem.empty());
  FUZZ_CHECK(text.size() < 1000);
  FUZZ_CHECK(tidemark::is_utf8(text));
  for (const char c : text) FUZZ_CHECK(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
}

// The same of a reader that was told to call its input "fuzz".
inline void check_reader_error(const tidemark::Error& error) {
  check_error(error);
  FUZZ_CHECK(std::string_view(error.what()).starts_with("[fuzz"));
}
