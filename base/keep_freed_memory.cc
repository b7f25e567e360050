#include "base/keep_freed_memory.h"

#include <malloc.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "base/address_space.h"

namespace plait::base {
namespace {

// Of the heap's first part, from which a block of that size is taken and given back, untouched. A kernel that gives huge pages
// to all or to none does not care.
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
  mallopt(M_MMAP_MAX, 0);         // no blocks outside of the heap, which go back one by one
  mallopt(M_TRIM_THRESHOLD, -1);  // no end
  if (!AddressSpaceLeft().has_value()) AskForHugePages();  // else the room is for what needs it
}

}  // namespace plait::base
