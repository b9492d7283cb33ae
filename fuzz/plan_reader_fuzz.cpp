// Reads any bytes as a plan file: a plan that writes the same text again, or an Error.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz_check.h"
#include "tidemark/base/error.h"
#include "tidemark/plan/plan_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const tidemark::plan::PortablePlan plan = tidemark::plan::read_portable_plan_text(text, "fuzz");
    FUZZ_CHECK(tidemark::plan::read_portable_plan_text(tidemark::plan::write_plan(plan), "again") == plan);
  } catch (const tidemark::Error& error) {
    check_reader_error(error);
  }
  return 0;
}
