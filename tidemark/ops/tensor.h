#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tidemark/ops/dims.h"
#include "tidemark/step/records.h"

// Tensors without data: what is left of a tensor when its values are taken away. A Tensor is a counted handle, as in
// PyTorch, and the counts matter: a storage dies with the last tensor over it, and that moment is recorded.

namespace tidemark::ops {

using step::DType;

struct GradNode;
struct Storage;

// Is told when a storage dies.
class StorageWatcher {
 public:
  virtual void died(Storage& storage) = 0;

 protected:
  ~StorageWatcher() = default;
};

// Memory that tensors share. The second half is the recorder's notes about it.
struct Storage {
  std::int64_t bytes = 0;
  StorageWatcher* watcher = nullptr;
  std::uint32_t holders = 0;  // tensors over it

  step::StorageId id;  // none until it is written down
  std::uint32_t version = 0;
  step::Role role = step::Role::kPlain;
  step::StorageId of;
  step::SaveId save;      // it stands for what autograd gave back of this save
  step::NodeId made_by;   // the backward node that was running
  bool is_fixed = false;  // there before and after the step: parameters, buffers, optimizer state
};

struct TensorData {
  std::uint32_t refs = 0;
  Storage* storage = nullptr;
  DType dtype = DType::kFloat32;
  Dims sizes;
  Dims strides;
  std::int64_t offset = 0;
  bool is_view = false;   // PyTorch's _is_view(): made by a view op
  step::LayoutId layout;  // once it is known

  bool requires_grad = false;  // of a leaf; other tensors have a grad_fn
  std::uint32_t output_nr = 0;
  std::shared_ptr<GradNode> grad_fn;
  std::shared_ptr<GradNode> accumulator;  // of a leaf

  TensorData() = default;
  TensorData(const TensorData&) = delete;
  TensorData& operator=(const TensorData&) = delete;
  ~TensorData();
};

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(TensorData* data) : data_(data) { hold(); }
  Tensor(const Tensor& other) : data_(other.data_) { hold(); }
  Tensor(Tensor&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  Tensor& operator=(const Tensor& other) {
    Tensor(other).swap(*this);
    return *this;
  }
  Tensor& operator=(Tensor&& other) noexcept {
    Tensor(std::move(other)).swap(*this);
    return *this;
  }
  ~Tensor() { let_go(); }

  explicit operator bool() const { return data_ != nullptr; }
  void reset() { let_go(), data_ = nullptr; }
  void swap(Tensor& other) noexcept { std::swap(data_, other.data_); }

  TensorData* get() const { return data_; }
  TensorData* operator->() const { return data_; }
  TensorData& operator*() const { return *data_; }

  DType dtype() const { return data_->dtype; }
  const Dims& sizes() const { return data_->sizes; }
  const Dims& strides() const { return data_->strides; }
  std::size_t rank() const { return data_->sizes.size(); }
  std::int64_t size(int dim) const;  // negative: from the end
  bool needs_grad() const { return data_->requires_grad || data_->grad_fn != nullptr; }
  bool is(const Tensor& other) const { return data_ == other.data_; }

 private:
  void hold() {
    if (data_ != nullptr) ++data_->refs;
  }
  void let_go() {
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDelete): the analyzer takes every count for the last one
    if (data_ != nullptr && --data_->refs == 0) delete data_;
  }

  TensorData* data_ = nullptr;
};

// Lets go of tensors one after the other, as Python does with the variables of a function that returns.
template <class... T>
void drop(T&... tensors) {
  (tensors.reset(), ...);
}

// The same for a list, from its start.
inline void drop_each(std::vector<Tensor>& tensors) {
  for (Tensor& t : tensors) t.reset();
  tensors.clear();
}

// -- arithmetic of layouts; all of it checked against overflow --

std::int64_t count_of(const Dims& sizes);                                    // elements
std::int64_t bytes_of(DType dtype, const Dims& sizes, const Dims& strides);  // of a storage that just holds this
Dims contiguous_strides(const Dims& sizes);
bool is_contiguous(const Dims& sizes, const Dims& strides);
bool is_channels_last(const Dims& sizes, const Dims& strides);  // four dimensions, laid out NHWC
Dims channels_last_strides(const Dims& sizes);
// Every element once, in one piece, in whatever order of dimensions.
bool is_dense(const Dims& sizes, const Dims& strides);
// Strides of a new tensor that keeps the order of dimensions (empty_like and friends).
Dims like_strides(const Dims& sizes, const Dims& strides);
inline bool is_contiguous(const Tensor& t) { return is_contiguous(t.sizes(), t.strides()); }

// The product. Throws: Error above 2^60, which no model has.
std::int64_t times(std::int64_t a, std::int64_t b);

// The dimension counted from the start. Throws: Error when there is none such.
std::size_t wrap_dim(std::int64_t dim, std::size_t rank);
// The size with -1 worked out.
Dims infer_size(const Dims& size, std::int64_t count);
// Strides with which the tensor can be seen in this size without a copy.
bool view_strides(const Dims& sizes, const Dims& strides, const Dims& size, Dims& result);
// NumPy's rule for two shapes. Throws: Error when they do not fit.
Dims broadcast(const Dims& a, const Dims& b);

bool is_floating(DType dtype);

}  // namespace tidemark::ops
