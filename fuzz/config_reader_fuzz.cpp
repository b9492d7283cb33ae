// Any bytes are refused with an Error that is fit to print, or are a config of which a model can be built, or that is
// refused when it is.

#include <cstdint>
#include <string_view>

#include "fuzz_check.h"
#include "tidemark/base/error.h"
#include "tidemark/zoo/config_file.h"
#include "tidemark/zoo/record.h"

namespace {

using namespace tidemark;

// A model of many layers is as good as one of few, and slower.
constexpr std::int64_t kMostLayers = 4;

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
