// LibTorch's OpenMP runtime is not instrumented, so ThreadSanitizer does not see its synchronization. This file
// annotates OpenMP's guarantee: what precedes a parallel region happens before it, and the region before what follows.
#include <dlfcn.h>

extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier): the names are the runtime's.
void __tsan_acquire(void* address);
void __tsan_release(void* address);
// NOLINTEND(bugprone-reserved-identifier)
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);
}

namespace {

struct Region {
  void (*body)(void*);
  void* data;
};

void RunOnThread(void* data) {
  auto* const region = static_cast<Region*>(data);
  __tsan_acquire(region);
  region->body(region->data);
  __tsan_release(region);
}

}  // namespace

// In place of the OpenMP library's, for its callers in every library.
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags) {
  static const auto library = reinterpret_cast<decltype(&GOMP_parallel)>(dlsym(RTLD_NEXT, "GOMP_parallel"));
  Region region = {body, data};
  __tsan_release(&region);
  library(RunOnThread, &region, threads, flags);
  __tsan_acquire(&region);
}
