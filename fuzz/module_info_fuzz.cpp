// The reader of module statistics: what it takes it writes and reads again as the same text.

#include <cstdint>
#include <string_view>

#include "fuzz_check.h"
#include "tidemark/sac/module_graph.h"
#include "tidemark/sac/module_info_file.h"

namespace {

using namespace tidemark;

void try_graph(const sac::ModuleInfo& info) {
  try {
    const sac::ModuleGraph graph = sac::build_module_graph(info);
    FUZZ_CHECK(graph.nodes.size() == info.modules.size());
    sac::reference_baseline(graph);
  } catch (const Error& error) {
    check_error(error);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const sac::ModuleInfo info = sac::parse_module_info(text, "fuzz");
    const std::string written = sac::module_info_json(info);
    FUZZ_CHECK(sac::module_info_json(sac::parse_module_info(written)) == written);
    try_graph(info);
  } catch (const Error& error) {
    check_reader_error(error);
  }
  return 0;
}
