#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tidemark/base/hash.h"
#include "tidemark/step/step.h"

namespace tidemark::step {

// What a person wants to know first about a recorded step.
struct OpCount {
  std::string name;
  std::int64_t count = 0;
};

struct RoleBytes {
  Role role = Role::kPlain;
  std::int64_t storages = 0;
  std::int64_t bytes = 0;           // of all storages of the role, whenever they live
  std::int64_t resident_bytes = 0;  // of those that are there before the step begins
};

struct PassCount {
  PassKind kind = PassKind::kForward;
  std::int64_t passes = 0;
  std::int64_t ops = 0;
};

struct LargeStorage {
  StorageId storage;
  std::int64_t bytes = 0;
  Role role = Role::kPlain;
  std::string description;  // the parameter's name, the op that made it, or whose gradient it is; may be empty
};

struct StepSummary {
  Hash128 fingerprint;
  Meta meta;
  std::int64_t modules = 0;
  std::int64_t calls = 0;
  std::int64_t ops = 0;
  std::int64_t tensors = 0;
  std::int64_t storages = 0;
  std::int64_t saves = 0;
  std::int64_t saved_bytes = 0;  // of distinct storages that autograd holds and that are no parameter, buffer or input
  std::int64_t events = 0;
  std::vector<PassCount> passes;      // kinds that occur, in their order
  std::vector<OpCount> op_counts;     // most frequent first, then by name
  std::vector<RoleBytes> roles;       // roles that occur, in their order
  std::vector<LargeStorage> largest;  // largest first, then by id
  std::vector<std::string> missing;   // what the record does not hold, in plain words
};

struct SummaryOptions {
  std::size_t largest_count = 5;
};

StepSummary summarize(const Step& step, const SummaryOptions& options = {});

}  // namespace tidemark::step
