#pragma once

#include <cstdint>

namespace tidemark::ops {

class Call;
struct Row;

// Bytes that an op reads and writes: those of the elements it touches, each once. An expanded tensor counts by what it
// holds.
struct Moved {
  std::int64_t read = 0;
  std::int64_t written = 0;
};

// By the row of the op, once it has run: its own rule, or that of all others, which read all inputs and write all
// results. Views move nothing.
Moved moved(const Call& call);
// The same by the row of another form of the op.
Moved moved(const Row& row, const Call& call);

// Rules of rows that differ.
Moved moves_nothing(const Call& call);  // new memory that nothing is written to
Moved only_writes(const Call& call);    // its input gives a layout, and no values
Moved overwrites(const Call& call);     // what it writes to, it does not read
Moved gathers(const Call& call);        // reads as much of its first input as it returns
Moved scatters(const Call& call);       // writes as much of its first input as it is given

}  // namespace tidemark::ops
