// Any bytes are refused with an Error that is fit to print, or are a device whose figures all have a source.

#include <cstdint>
#include <string_view>

#include "fuzz_check.h"
#include "tidemark/base/error.h"
#include "tidemark/device/read_device.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidemark;
  try {
    const device::Device found = device::parse_device({reinterpret_cast<const char*>(data), size}, "fuzz");
    FUZZ_CHECK(found.memory_bytes.value > 0);
    FUZZ_CHECK(!found.source_text(found.memory_bytes.source).empty());
  } catch (const Error& error) {
    check_reader_error(error);
  }
  return 0;
}
