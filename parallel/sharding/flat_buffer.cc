#include "parallel/sharding/flat_buffer.h"

#include <ATen/ops/empty.h>
#include <c10/core/Allocator.h>

#include <algorithm>
#include <utility>

namespace plait::parallel {

c10::DataPtr BufferPool::Take(std::size_t bytes, at::Device device) {
  std::vector<c10::DataPtr>& free = free_[bytes];
  if (free.empty()) {
    Count(static_cast<std::int64_t>(bytes));
    return c10::GetAllocator(device.type())->allocate(bytes);
  }
  c10::DataPtr memory = std::move(free.back());
  free.pop_back();
  return memory;
}

void BufferPool::Give(c10::DataPtr memory, std::size_t bytes) { free_[bytes].push_back(std::move(memory)); }

void BufferPool::Count(std::int64_t bytes) {
  bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, bytes_);
}

at::Tensor UnreadableTensor(const at::Tensor& like, const std::string& message) {
  const at::Tensor tensor = at::empty({0}, like.options());
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  storage->set_nbytes(like.nbytes());
  storage->release_data_and_set_meta_custom_data_ptr_error_msg_(message);
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(like.sizes());
  return tensor;
}

FlatBuffer::FlatBuffer(BufferPool* pool, std::int64_t count, const at::TensorOptions& options)
    : pool_(pool),
      tensor_(at::empty({0}, options)),
      bytes_(static_cast<std::size_t>(count) * tensor_.element_size()) {
  // Sets sizes without allocating memory, as resize_ would.
  tensor_.unsafeGetTensorImpl()->set_sizes_contiguous({count});
}

FlatBuffer::FlatBuffer(FlatBuffer&& other) noexcept { *this = std::move(other); }

FlatBuffer& FlatBuffer::operator=(FlatBuffer&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(tensor_, other.tensor_);
  std::swap(bytes_, other.bytes_);
  std::swap(allocated_, other.allocated_);
  std::swap(adopted_, other.adopted_);
  return *this;
}

void FlatBuffer::Allocate() {
  if (allocated_ || pool_ == nullptr) return;
  c10::StorageImpl* storage = tensor_.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(pool_->Take(bytes_, tensor_.device()));
  storage->set_nbytes(bytes_);
  allocated_ = true;
}

void FlatBuffer::Adopt(at::Tensor values) {
  Release();
  pool_->Count(static_cast<std::int64_t>(bytes_));
  void* const data = values.mutable_data_ptr();
  auto* const owner = new at::Tensor(std::move(values));
  c10::StorageImpl* storage = tensor_.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(c10::DataPtr(
      data, owner, [](void* tensor) { delete static_cast<at::Tensor*>(tensor); }, tensor_.device()));
  storage->set_nbytes(bytes_);
  allocated_ = adopted_ = true;
}

void FlatBuffer::Release() {
  if (!allocated_) return;
  c10::StorageImpl* storage = tensor_.storage().unsafeGetStorageImpl();
  c10::DataPtr memory = storage->set_data_ptr(c10::DataPtr(nullptr, tensor_.device()));
  if (std::exchange(adopted_, false)) {
    pool_->Count(-static_cast<std::int64_t>(bytes_));
  } else {
    pool_->Give(std::move(memory), bytes_);
  }
  storage->set_nbytes(0);
  allocated_ = false;
}

}  // namespace plait::parallel
