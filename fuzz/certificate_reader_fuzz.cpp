// Reads any bytes as a certificate: one that writes the same text again, or an Error.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz_check.h"
#include "tidemark/base/error.h"
#include "tidemark/verify/certificate_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const tidemark::verify::Certificate certificate = tidemark::verify::read_certificate_text(text, "fuzz");
    FUZZ_CHECK(tidemark::verify::read_certificate_text(tidemark::verify::write_certificate(certificate), "again") ==
               certificate);
  } catch (const tidemark::Error& error) {
    check_reader_error(error);
  }
  return 0;
}
