#include "parallel/plan/meta_memory.h"

namespace plait::parallel {
namespace {

// Owned by a storage in place of memory.
struct Counted {
  std::atomic<std::int64_t>& live;
  std::int64_t bytes;
  ~Counted() { live -= bytes; }
};

}  // namespace

MetaMemory& MetaMemory::Install() {
  static MetaMemory* const memory = [] {
    auto* made = new MetaMemory;
    c10::SetAllocator(at::kMeta, made, /*priority=*/1);
    return made;
  }();
  return *memory;
}

c10::DataPtr MetaMemory::allocate(std::size_t size) {
  const std::int64_t bytes = counts_ ? static_cast<std::int64_t>(size) : 0;
  const std::int64_t live = live_ += bytes;
  for (std::int64_t peak = peak_; peak < live && !peak_.compare_exchange_weak(peak, live);) {
  }
  auto* const counted = new Counted{live_, bytes};
  return {nullptr, counted, [](void* owned) { delete static_cast<Counted*>(owned); }, at::Device(at::kMeta)};
}

}  // namespace plait::parallel
