#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "tidemark/base/error.h"

namespace tidemark::ops {

// A short list of whole numbers: sizes, strides, dimensions. It lives in place, since a model has tens of thousands of
// them. Negative entries mean what they mean to PyTorch (-1 in a size to be worked out, dimensions from the end).
class Dims {
 public:
  static constexpr std::size_t kMax = 6;

  Dims() = default;
  Dims(std::initializer_list<std::int64_t> items) : Dims(std::span(items.begin(), items.size())) {}
  explicit Dims(std::span<const std::int64_t> items) {
    for (const std::int64_t item : items) push_back(item);
  }
  explicit Dims(std::size_t count, std::int64_t value) {
    for (std::size_t i = 0; i < count; ++i) push_back(value);
  }

  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  std::int64_t& operator[](std::size_t i) { return items_[i]; }
  std::int64_t operator[](std::size_t i) const { return items_[i]; }
  // From the end: back(0) is the last one.
  std::int64_t back(std::size_t i = 0) const { return items_[count_ - 1 - i]; }
  const std::int64_t* begin() const { return items_.data(); }
  const std::int64_t* end() const { return items_.data() + count_; }

  void push_back(std::int64_t value) {
    TIDEMARK_CHECK(count_ < kMax, "native tensors have at most 6 dimensions");
    items_[count_++] = value;
  }
  void insert(std::size_t at, std::int64_t value) {
    push_back(0);
    for (std::size_t i = count_ - 1; i > at; --i) items_[i] = items_[i - 1];
    items_[at] = value;
  }
  void erase(std::size_t at) {
    for (std::size_t i = at; i + 1 < count_; ++i) items_[i] = items_[i + 1];
    --count_;
  }
  std::span<const std::int64_t> span() const { return {items_.data(), count_}; }

  friend bool operator==(const Dims& a, const Dims& b) {
    if (a.count_ != b.count_) return false;
    for (std::size_t i = 0; i < a.count_; ++i)
      if (a.items_[i] != b.items_[i]) return false;
    return true;
  }

 private:
  std::array<std::int64_t, kMax> items_{};
  std::uint8_t count_ = 0;
};

}  // namespace tidemark::ops
