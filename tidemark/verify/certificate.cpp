#include "tidemark/verify/certificate.h"

namespace tidemark::verify {

Hash128 hash_of(const planner::Times& times) {
  Hasher hasher;
  hasher.add(times.op_ps.size());
  for (const std::int64_t ps : times.op_ps) hasher.add_signed(ps);
  hasher.add_signed(times.region_ps);
  hasher.add_signed(times.region_save_ps);
  hasher.add_signed(times.region_rng_ps);
  return hasher.digest();
}

Hash128 hash_of(const memory::WorkspaceTable& table) {
  Hasher hasher;
  hasher.add(table.rows.size());
  for (const memory::WorkspaceRow& row : table.rows) {
    hasher.add(std::string_view(row.key));
    hasher.add(row.steps.size());
    for (const memory::WorkspaceStep& step : row.steps) {
      hasher.add(static_cast<std::uint64_t>(step.kind));
      hasher.add_signed(step.value);
    }
  }
  return hasher.digest();
}

}  // namespace tidemark::verify
