#include "tidemark/ops/traffic.h"

#include <algorithm>

#include "tidemark/ops/call.h"
#include "tidemark/step/dtype.h"

namespace tidemark::ops {

namespace {

std::int64_t touched(const Tensor& t) {
  std::int64_t count = 1;
  std::int64_t extent = 1;
  for (std::size_t i = 0; i < t.rank(); ++i) {
    if (t.sizes()[i] == 0) return 0;
    if (t.strides()[i] == 0) continue;
    count *= t.sizes()[i];
    extent += (t.sizes()[i] - 1) * t.strides()[i];
  }
  return std::min(count, extent) * step::item_bytes(t.dtype());
}

bool is_written(const Made& made) { return made.tensor && made.alias != step::AliasKind::kView; }

std::int64_t written_by(const Call& call) {
  std::int64_t bytes = 0;
  for (const Made& made : call.made())
    if (is_written(made)) bytes += touched(made.tensor);
  return bytes;
}

std::int64_t given_to(const Call& call, std::size_t from) {
  std::int64_t bytes = 0;
  for (std::size_t i = from; i < call.inputs().size(); ++i) bytes += touched(call.in(i));
  return bytes;
}

}  // namespace

Moved moved(const Call& call) { return moved(call.row(), call); }

Moved moved(const Row& row, const Call& call) {
  if (std::none_of(call.made().begin(), call.made().end(), is_written)) return {};
  if (row.moves != nullptr) return row.moves(call);
  return {given_to(call, 0), written_by(call)};
}

Moved moves_nothing(const Call&) { return {}; }

Moved only_writes(const Call& call) { return {0, written_by(call)}; }

Moved overwrites(const Call& call) {
  std::int64_t read = given_to(call, 0);
  for (const Made& made : call.made())
    if (made.alias == step::AliasKind::kMutates) read -= touched(call.in(made.input));
  return {read, written_by(call)};
}

Moved gathers(const Call& call) {
  const std::int64_t written = written_by(call);
  return {given_to(call, 1) + written, written};
}

Moved scatters(const Call& call) {
  std::int64_t largest = 0;
  for (std::size_t i = 1; i < call.inputs().size(); ++i) largest = std::max(largest, touched(call.in(i)));
  return {given_to(call, 1), largest};
}

}  // namespace tidemark::ops
