// LibTorch's CPU allocator with a count of bytes: for tests of memory plans.
//
//   static CountingAllocator counting;
//   c10::SetCPUAllocator(&counting, /*priority=*/100);
#ifndef PLAIT_TOOLS_IMAGE_TRAINING_TESTING_COUNTING_ALLOCATOR_H_
#define PLAIT_TOOLS_IMAGE_TRAINING_TESTING_COUNTING_ALLOCATOR_H_

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace plait::image_training {

// Counts live bytes; the size stands before the memory.
class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    char* const block =
        static_cast<char*>(std::aligned_alloc(kRoom, (bytes + 2 * kRoom - 1) / kRoom * kRoom));
    std::memcpy(block, &bytes, sizeof(bytes));
    live_ += static_cast<std::int64_t>(bytes);
    peak_ = std::max(peak_, live_);
    return {block + kRoom, block + kRoom, &Free, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  static std::int64_t live() { return live_; }
  static std::int64_t peak() { return peak_; }
  static void ResetPeak() { peak_ = live_; }

 private:
  static constexpr std::size_t kRoom = 64;
  static void Free(void* memory) {
    if (memory == nullptr) return;
    char* const block = static_cast<char*>(memory) - kRoom;
    std::size_t bytes = 0;
    std::memcpy(&bytes, block, sizeof(bytes));
    live_ -= static_cast<std::int64_t>(bytes);
    std::free(block);
  }
  static inline std::int64_t live_ = 0, peak_ = 0;
};

}  // namespace plait::image_training

#endif  // PLAIT_TOOLS_IMAGE_TRAINING_TESTING_COUNTING_ALLOCATOR_H_
