#pragma once

#include <cstdint>

namespace tidemark::step {

// Caps on what a Step may hold, checked by the builder and, while streaming, by the reader. They are far above any
// real step (Llama-3.1-405B has about 30,000 ops) and low enough that a hostile file stays cheap.
inline constexpr std::int64_t kMaxStrings = 1 << 20;
inline constexpr std::int64_t kMaxStringBytes = 64 << 10;
inline constexpr std::int64_t kMaxPathBytes = 4 << 10;  // of a module's fully qualified name
inline constexpr std::int64_t kMaxLineBytes = 16 << 20;
inline constexpr std::int64_t kMaxMeta = 1 << 12;
inline constexpr std::int64_t kMaxArgLists = 1 << 20;
inline constexpr std::int64_t kMaxExtraSections = 256;  // that this version does not know
inline constexpr std::int64_t kMaxExtraRows = 1 << 20;  // of those, together
inline constexpr std::int64_t kMaxRecords = 1 << 26;    // in any other table
inline constexpr std::int64_t kMaxEvents = 1 << 28;
inline constexpr std::int64_t kMaxDepth = 512;                         // of nested modules, calls and regions
inline constexpr std::int64_t kMaxRank = 64;                           // dimensions of a tensor
inline constexpr std::int64_t kMaxOpTensors = 1 << 18;                 // inputs, and outputs, of an op or call
inline constexpr std::int64_t kMaxArgDepth = 4;                        // nesting of lists in an op's arguments
inline constexpr std::int64_t kMaxArgValues = 1 << 16;                 // values in one argument list
inline constexpr std::int64_t kMaxTotalBytes = std::int64_t{1} << 62;  // of all storages together

}  // namespace tidemark::step
