// Any bytes are refused with an Error that is fit to print, or are a Step that survives being written and read.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz_check.h"
#include "tidemark/base/byte_source.h"
#include "tidemark/base/error.h"
#include "tidemark/memory/replay.h"
#include "tidemark/plan/policies.h"
#include "tidemark/step/dump.h"
#include "tidemark/step/fingerprint.h"
#include "tidemark/step/read_step.h"
#include "tidemark/step/summary.h"
#include "tidemark/step/write_step.h"

namespace {

using namespace tidemark::step;

// Small, so that limits are reached by small inputs and every run is quick.
constexpr ReadOptions kOptions = {.max_line_bytes = 1 << 13, .max_total_bytes = 1 << 18, .max_expansion = 200};

std::optional<Step> read(std::string_view text) {
  try {
    return parse_step(text, "fuzz", kOptions);
  } catch (const tidemark::Error& error) {
    check_reader_error(error);
    return std::nullopt;
  }
}

// Most of what a run costs is reading, so what reads again is done for a part of the inputs: always the same ones.
bool is_one_in(std::string_view text, unsigned n) {
  unsigned sum = 0;
  for (const char c : text) sum = sum * 31 + static_cast<unsigned char>(c);
  return sum % n == 0;
}

void check_round_trip(const Step& step) {
  const std::string text = step_text(step);
  const Step again = parse_step(text, "fuzz");
  FUZZ_CHECK(again == step);
  FUZZ_CHECK(step_text(again) == text);
  FUZZ_CHECK(fingerprint(again) == fingerprint(step));
}

// Any step can be replayed under any policy, and what is alive adds up; only totals beyond 63 bits are refused.
void check_replay(const Step& step) {
  for (const char* policy : {"none", "full", "selective"}) {
    try {
      const auto plan = tidemark::plan::make_plan(step, tidemark::plan::parse_policy(policy));
      const auto timeline = tidemark::memory::replay(step, plan);
      std::int64_t sum = 0;
      for (const std::int64_t bytes : timeline.peak_by_category) sum += bytes;
      FUZZ_CHECK(sum == timeline.peak.total_bytes);
      FUZZ_CHECK(timeline.peak.total_bytes >= timeline.end_bytes);
    } catch (const tidemark::Error& error) {
      FUZZ_CHECK(error.info().kind == tidemark::ErrorKind::kLimit);
    }
  }
}

void check_step(const Step& step, std::string_view input) {
  if (is_one_in(input, 4)) check_round_trip(step);
  if (is_one_in(input, 5)) FUZZ_CHECK(summarize(step).events == static_cast<std::int64_t>(step.tables().events.size()));
  if (is_one_in(input, 6)) check_replay(step);
  if (is_one_in(input, 7)) FUZZ_CHECK(!dump(step).empty());
  if (is_one_in(input, 64)) FUZZ_CHECK(parse_step(tidemark::compress_zstd(step_text(step)), "fuzz") == step);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto step = read(text)) check_step(*step, text);
  return 0;
}
