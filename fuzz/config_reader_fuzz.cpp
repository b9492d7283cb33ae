// Any bytes are refused with an Error that is fit to print, or are a config of which a model can be built, or that is
// refused when it is.

#include <cstdint>
#include <string_view>

#include "fuzz_check.h"
#include "tidemark/base/error.h"
#include "tidemark/base/utf8.h"
#include "tidemark/zoo/config_file.h"
#include "tidemark/zoo/record.h"

namespace {

using namespace tidemark;

// A model of many layers is as good as one of few, and slower.
constexpr std::int64_t kMostLayers = 4;

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

void check_error(const Error& error) {
  FUZZ_CHECK(error.info().kind == ErrorKind::kInput || error.info().kind == ErrorKind::kLimit);
  const std::string_view text = error.what();
  FUZZ_CHECK(!error.info().problem.empty());
  FUZZ_CHECK(text.size() < 1000);
  FUZZ_CHECK(is_utf8(text));
  for (const char c : text) FUZZ_CHECK(!is_control(c));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const zoo::Config config = zoo::parse_config(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    if (zoo::layers_of(config) <= kMostLayers) zoo::record(config, {.sequence = zoo::takes_images(config) ? 0 : 2});
  } catch (const Error& error) {
    check_error(error);
  }
  return 0;
}
