// Any bytes are refused with an Error that is fit to print, or are a device whose figures all have a source.

#include <cstdint>
#include <string_view>

#include "fuzz_check.h"
#include "tidemark/base/error.h"
#include "tidemark/base/utf8.h"
#include "tidemark/device/read_device.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidemark;
  try {
    const device::Device found = device::parse_device({reinterpret_cast<const char*>(data), size}, "fuzz");
    FUZZ_CHECK(found.memory_bytes.value > 0);
    FUZZ_CHECK(!found.source_text(found.memory_bytes.source).empty());
  } catch (const Error& error) {
    const std::string_view text = error.what();
    FUZZ_CHECK(text.starts_with("[fuzz"));
    FUZZ_CHECK(text.size() < 1000);
    FUZZ_CHECK(is_utf8(text));
    for (const char c : text) FUZZ_CHECK(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
  }
  return 0;
}
