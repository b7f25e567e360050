// Bytes that tensors on the meta device would take: what a pass allocates, without the memory.
//
//   MetaMemory& memory = MetaMemory::Install();  // before the tensors that are to be counted
//   memory.ForgetPeak();
//   ...                                          // a pass on tensors of at::kMeta
//   memory.peak_bytes();
//
// A tensor counts, unless it was made within an Uncounted, from its making until nothing refers to its storage, as in an allocator that hands out what is
// asked for. What kernels take for themselves is not counted: on the meta device none runs.
#ifndef PLAIT_PARALLEL_PLAN_META_MEMORY_H_
#define PLAIT_PARALLEL_PLAN_META_MEMORY_H_

#include <c10/core/Allocator.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace plait::parallel {

// Thread-safe, but for ForgetPeak beside allocations.
class MetaMemory final : public c10::Allocator {
 public:
  // For the rest of the process, as tensors outlive whoever made them.
  static MetaMemory& Install();

  // Tensors that are made while there is one do not count: a model whose parameters will be replaced.
  class Uncounted {
   public:
    Uncounted() { Install().counts_ = false; }
    ~Uncounted() { Install().counts_ = true; }
    Uncounted(const Uncounted&) = delete;
    Uncounted& operator=(const Uncounted&) = delete;
  };

  std::int64_t live_bytes() const { return live_; }
  std::int64_t peak_bytes() const { return peak_; }  // since ForgetPeak, or the beginning
  void ForgetPeak() { peak_ = live_.load(); }

  c10::DataPtr allocate(std::size_t bytes) override;
  void copy_data(void*, const void*, std::size_t) const override {}

 private:
  std::atomic<std::int64_t> live_ = 0, peak_ = 0;
  std::atomic<bool> counts_ = true;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PLAN_META_MEMORY_H_
