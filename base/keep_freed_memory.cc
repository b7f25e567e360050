#include "base/keep_freed_memory.h"

#include <malloc.h>

#include <limits>

namespace plait::base {

void KeepFreedMemory() {
  mallopt(M_MMAP_MAX, 0);  // no blocks outside of the heap, which go back one by one
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

}  // namespace plait::base
