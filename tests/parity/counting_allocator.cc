#include "tests/parity/counting_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <algorithm>

namespace plait::parity {

CountingAllocator& CountingAllocator::Install() {
  static CountingAllocator* const allocator = [] {
    auto* made = new CountingAllocator;
    c10::SetCPUAllocator(made, /*priority=*/1);
    return made;
  }();
  return *allocator;
}

std::int64_t CountingAllocator::live_bytes() const {
  const std::lock_guard lock(mutex_);
  return live_;
}

std::int64_t CountingAllocator::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

void CountingAllocator::ForgetPeak() {
  const std::lock_guard lock(mutex_);
  peak_ = live_;
}

c10::DataPtr CountingAllocator::allocate(std::size_t bytes) {
  void* memory = c10::alloc_cpu(bytes);
  const std::lock_guard lock(mutex_);
  if (memory != nullptr) blocks_[memory] = static_cast<std::int64_t>(bytes);
  live_ += static_cast<std::int64_t>(bytes);
  peak_ = std::max(peak_, live_);
  return {memory, memory, &Delete, at::Device(at::kCPU)};
}

void CountingAllocator::copy_data(void* to, const void* from, std::size_t bytes) const {
  default_copy_data(to, from, bytes);
}

void CountingAllocator::Delete(void* memory) {
  if (memory == nullptr) return;
  CountingAllocator& self = Install();
  {
    const std::lock_guard lock(self.mutex_);
    const auto block = self.blocks_.find(memory);
    self.live_ -= block->second;
    self.blocks_.erase(block);
  }
  c10::free_cpu(memory);
}

}  // namespace plait::parity
