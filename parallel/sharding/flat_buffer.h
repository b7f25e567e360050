// Flat tensors whose memory comes and goes while views of them stay. Private to parallel/sharding.
//
//   BufferPool pool;
//   FlatBuffer whole(&pool, count, options);
//   parameter.set_data(whole.tensor().narrow(0, offset, n).view(shape));
//   whole.Allocate();  // the view has memory now, with any numbers in it
//   whole.Release();   // and now none: it must not be read
//
// Autograd sees neither: it is a raw exchange of memory under the storage, so what it has saved as a view is
// there again after the next Allocate. Released memory waits in the pool for the next buffer of its size,
// because fresh pages from the kernel cost more than the copy into them.
#ifndef PLAIT_PARALLEL_SHARDING_FLAT_BUFFER_H_
#define PLAIT_PARALLEL_SHARDING_FLAT_BUFFER_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace plait::parallel {

// Outlives its buffers.
class BufferPool {
 public:
  BufferPool() = default;
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  c10::DataPtr Take(std::size_t bytes, at::Device device);
  void Give(c10::DataPtr memory, std::size_t bytes);

  // Memory that lives elsewhere but is to be counted.
  void Count(std::int64_t bytes);
  std::int64_t bytes() const { return bytes_; }
  std::int64_t peak_bytes() const { return peak_bytes_; }

 private:
  std::map<std::size_t, std::vector<c10::DataPtr>> free_;  // by size
  std::int64_t bytes_ = 0;                                 // of all, in use or free
  std::int64_t peak_bytes_ = 0;
};

// A tensor of the sizes and options of `like` that has no memory: whoever reads it gets a c10::Error with
// `message`. Sizes, strides and views of it are as usual.
at::Tensor UnreadableTensor(const at::Tensor& like, const std::string& message);

class FlatBuffer {
 public:
  FlatBuffer() = default;  // of no elements
  // Without memory at first.
  FlatBuffer(BufferPool* pool, std::int64_t count, const at::TensorOptions& options);
  // Memory that it has goes with the last view of it: an operation may still be under way in it.
  ~FlatBuffer() = default;
  FlatBuffer(FlatBuffer&& other) noexcept;
  FlatBuffer& operator=(FlatBuffer&& other) noexcept;

  const at::Tensor& tensor() const { return tensor_; }
  bool allocated() const { return allocated_; }
  void Allocate();  // nothing if it has memory
  void Release();   // nothing if it has none
  // In place of the buffer's own memory, that of `values`, until Release: a contiguous tensor of the buffer's
  // type, device and number of elements whose memory nothing else refers to.
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
