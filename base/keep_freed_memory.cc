#include "base/keep_freed_memory.h"

#include <malloc.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "base/address_space.h"

namespace plait::base {
namespace {

// For the first GiB of the heap: allocates a block of that size, advises the kernel, and frees it untouched. No effect
// if transparent_hugepage is "always" or "never".
void AskForHugePages() {
  constexpr std::size_t kHugePage = 2 << 20, kHeap = 1 << 30;
  void* const block = std::malloc(kHeap);
  if (block == nullptr) return;
  void* begin = block;
  std::size_t room = kHeap;
  std::align(kHugePage, kHeap - kHugePage, begin, room);
  madvise(begin, kHeap - kHugePage, MADV_HUGEPAGE);
  std::free(block);
}

}  // namespace

void KeepFreedMemory() {
  mallopt(M_MMAP_MAX, 0);         // no mmapped blocks, which free() returns to the kernel one by one
  mallopt(M_TRIM_THRESHOLD, -1);  // never shrink the heap
  if (!AddressSpaceLeft().has_value()) AskForHugePages();  // under a limit a GiB may be too much
}

}  // namespace plait::base
