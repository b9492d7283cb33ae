// Any bytes are refused with an Error that is fit to print, or are a device whose figures all have a source. What its
// table says about the work of ops is refused in the same way, or can be written again and priced.

#include <cstdint>
#include <string_view>

#include "fuzz_check.h"
#include "tidemark/base/error.h"
#include "tidemark/cost/op_time.h"
#include "tidemark/cost/work_text.h"
#include "tidemark/device/read_device.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidemark;
  try {
    const device::Device found = device::parse_device({reinterpret_cast<const char*>(data), size}, "fuzz");
    FUZZ_CHECK(found.memory_bytes.value > 0);
    FUZZ_CHECK(!found.source_text(found.memory_bytes.source).empty());
    const cost::Machine machine = cost::make_machine(found);
    for (const device::MeasuredOp& row : found.measured) {
      if (row.work.empty()) continue;
      const cost::Work work = cost::parse_work_text(row.work, found.measured_place);
      FUZZ_CHECK(cost::work_text(work) == row.work);
      const cost::Time time = cost::op_time(work, machine);
      FUZZ_CHECK(time.total_ps >= 0);
    }
  } catch (const Error& error) {
    check_reader_error(error);
  }
  return 0;
}
