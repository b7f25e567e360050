// Flat tensors whose memory can be released and allocated again while views of them stay. Private to parallel/sharding.
//
//   BufferPool pool;
//   FlatBuffer whole(&pool, count, options);
//   parameter.set_data(whole.tensor().narrow(0, offset, n).view(shape));
//   whole.Allocate();  // the view has memory now, uninitialized
//   whole.Release();   // now it has none and must not be read
//
// Autograd does not notice: the memory is exchanged below the storage, so views that it has saved are valid again after
// the next Allocate. Released memory stays in the pool for the next buffer of its size, because fresh pages from the
// kernel cost more than the copy into them.
#ifndef PLAIT_PARALLEL_SHARDING_FLAT_BUFFER_H_
#define PLAIT_PARALLEL_SHARDING_FLAT_BUFFER_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace plait::parallel {

// Must outlive its buffers. Counts their bytes.
class BufferPool {
 public:
  BufferPool() = default;
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  c10::DataPtr Take(std::size_t bytes, at::Device device);
  void Give(c10::DataPtr memory, std::size_t bytes);

  // Counts memory that is allocated elsewhere.
  void Count(std::int64_t bytes);
  std::int64_t bytes() const { return bytes_; }
  std::int64_t peak_bytes() const { return peak_bytes_; }

 private:
  std::map<std::size_t, std::vector<c10::DataPtr>> free_;  // by size
  std::int64_t bytes_ = 0;                                 // of all, in use or free
  std::int64_t peak_bytes_ = 0;
};

// A tensor with the sizes and options of `like` but without memory: reading it throws a c10::Error with `message`.
// Sizes, strides and views of it are as usual.
at::Tensor UnreadableTensor(const at::Tensor& like, const std::string& message);

class FlatBuffer {
 public:
  FlatBuffer() = default;  // of no elements
  // Without memory at first.
  FlatBuffer(BufferPool* pool, std::int64_t count, const at::TensorOptions& options);
  // Does not return memory to the pool: it is freed with the last view, as an operation may still be using it.
  ~FlatBuffer() = default;
  FlatBuffer(FlatBuffer&& other) noexcept;
  FlatBuffer& operator=(FlatBuffer&& other) noexcept;

  const at::Tensor& tensor() const { return tensor_; }
  bool allocated() const { return allocated_; }
  void Allocate();  // no-op if it has memory
  void Release();   // no-op if it has none
  // Uses the memory of `values` in place of its own until Release. `values` must be contiguous, of the buffer's type,
  // device and number of elements, and the only reference to its memory.
  void Adopt(at::Tensor values);
  bool adopted() const { return adopted_; }

 private:
  BufferPool* pool_ = nullptr;
  at::Tensor tensor_;
  std::size_t bytes_ = 0;
  bool allocated_ = false;
  bool adopted_ = false;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_SHARDING_FLAT_BUFFER_H_
