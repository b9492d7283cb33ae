// Sizes and budgets as users write them: each text is refused with an Error, or printed back as the same value.

#include <cstdint>
#include <string_view>

#include "fuzz_check.h"
#include "tidemark/base/bytes.h"
#include "tidemark/base/error.h"

namespace {

void check_size(std::string_view text) {
  try {
    const std::int64_t bytes = tidemark::parse_bytes(text, "fuzz");
    FUZZ_CHECK(bytes >= 0);
    FUZZ_CHECK(tidemark::parse_bytes(tidemark::format_budget({bytes}), "fuzz") == bytes);
    FUZZ_CHECK(!tidemark::format_bytes(bytes).empty() && !tidemark::format_bytes_exact(bytes).empty());
  } catch (const tidemark::Error& error) {
    FUZZ_CHECK(error.info().kind == tidemark::ErrorKind::kInput);
  }
}

void check_budget(std::string_view text) {
  try {
    const tidemark::Budget budget = tidemark::parse_budget(text, "fuzz");
    FUZZ_CHECK(tidemark::parse_budget(tidemark::format_budget(budget), "fuzz") == budget);
    constexpr std::int64_t kDevice = std::int64_t{80} << 30;
    const std::int64_t bytes = budget.bytes_on(kDevice);
    FUZZ_CHECK(bytes >= 0);
    if (text.ends_with('%')) FUZZ_CHECK(bytes <= kDevice);
  } catch (const tidemark::Error& error) {
    FUZZ_CHECK(error.info().kind == tidemark::ErrorKind::kInput);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_size(text);
  check_budget(text);
  return 0;
}
