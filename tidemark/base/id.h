#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace tidemark {

// A position in one table, typed by the table, so that a StorageId cannot be passed where a TensorId is meant.
// A default-made id is "none": it refers to nothing.
//
//   struct TensorTag;
//   using TensorId = Id<TensorTag>;
template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::uint32_t position) : position_(position) {}

  static constexpr Id none() { return Id(); }
  constexpr bool is_none() const { return position_ == kNone; }
  constexpr bool has_value() const { return position_ != kNone; }

  constexpr std::uint32_t value() const { return position_; }
  constexpr std::size_t index() const { return position_; }

  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  std::uint32_t position_ = kNone;
};

}  // namespace tidemark

template <class Tag>
struct std::hash<tidemark::Id<Tag>> {
  std::size_t operator()(tidemark::Id<Tag> id) const noexcept { return std::hash<std::uint32_t>{}(id.value()); }
};
