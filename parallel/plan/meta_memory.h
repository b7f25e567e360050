// Counts the bytes that tensors on the meta device would take: what a pass would allocate.
//
//   MetaMemory& memory = MetaMemory::Install();  // before the tensors that are to be counted
//   memory.ForgetPeak();
//   ...                                          // a pass on tensors of at::kMeta
//   memory.peak_bytes();
//
// A tensor counts from its creation until its storage is freed, unless it was created within the scope of an Uncounted;
// sizes are not rounded up. The workspace of kernels is not counted: none runs on the meta device.
#ifndef PLAIT_PARALLEL_PLAN_META_MEMORY_H_
#define PLAIT_PARALLEL_PLAN_META_MEMORY_H_

#include <c10/core/Allocator.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace plait::parallel {

// Thread-safe, except ForgetPeak during allocations.
class MetaMemory final : public c10::Allocator {
 public:
  // Installs the allocator for the rest of the process. Further calls return the same object.
  static MetaMemory& Install();

  // Tensors created during its lifetime, by any thread, do not count: for a model whose parameters will be replaced.
  class Uncounted {
   public:
    Uncounted() { Install().counts_ = false; }
    ~Uncounted() { Install().counts_ = true; }
    Uncounted(const Uncounted&) = delete;
    Uncounted& operator=(const Uncounted&) = delete;
  };

  std::int64_t live_bytes() const { return live_; }
  std::int64_t peak_bytes() const { return peak_; }  // since the last ForgetPeak, or since Install
  void ForgetPeak() { peak_ = live_.load(); }

  c10::DataPtr allocate(std::size_t bytes) override;
  void copy_data(void*, const void*, std::size_t) const override {}

 private:
  std::atomic<std::int64_t> live_ = 0, peak_ = 0;
  std::atomic<bool> counts_ = true;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PLAN_META_MEMORY_H_
