// Counts the bytes of all CPU tensors in their allocator, independently of the code under test.
//
//   CountingAllocator& tensors = CountingAllocator::Install();  // before the tensors that are to be counted
//   const std::int64_t before = tensors.live_bytes();
//   tensors.ForgetPeak();
//   ...
//   tensors.peak_bytes() - before
#ifndef PLAIT_TESTS_PARITY_COUNTING_ALLOCATOR_H_
#define PLAIT_TESTS_PARITY_COUNTING_ALLOCATOR_H_

#include <c10/core/Allocator.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace plait::parity {

// Thread-safe.
class CountingAllocator : public c10::Allocator {
 public:
  // Replaces LibTorch's CPU allocator for the rest of the process; further calls return the same object.
  static CountingAllocator& Install();

  std::int64_t live_bytes() const;
  std::int64_t peak_bytes() const;  // since ForgetPeak, or the beginning
  void ForgetPeak();

  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override { return &Delete; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override;

 private:
  static void Delete(void* memory);

  mutable std::mutex mutex_;
  std::unordered_map<void*, std::int64_t> blocks_;
  std::int64_t live_ = 0, peak_ = 0;
};

}  // namespace plait::parity

#endif  // PLAIT_TESTS_PARITY_COUNTING_ALLOCATOR_H_
