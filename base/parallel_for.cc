#include "base/parallel_for.h"

#include <ATen/Parallel.h>
#include <c10/util/ParallelGuard.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

// Of libgomp, which LibTorch uses: what g++ calls for OpenMP's parallel regions. clang calls another runtime.
extern "C" {
void GOMP_parallel(void (*body)(void* data), void* data, unsigned threads, unsigned flags);
int omp_get_num_threads();
int omp_get_thread_num();
}

namespace plait {
namespace {

using Body = absl::FunctionRef<void(std::int64_t first, std::int64_t last)>;

constexpr std::int64_t kNumbersOfThread = 32768;  // LibTorch's at::internal::GRAIN_SIZE

thread_local std::vector<int>* recorded = nullptr;

void RunInParallelRegion(int thread, std::int64_t first, std::int64_t last, Body body) {
  const at::internal::ThreadIdGuard id(thread);
  const c10::ParallelGuard guard(true);  // what at::in_parallel_region() returns
  body(first, last);
}

struct Loop {
  std::int64_t count;
  std::int64_t grain;
  Body body;
  std::mutex mutex;
  std::exception_ptr first_error;
};

// The range of one thread of a parallel region: as many threads get one as there are grains, all of one length.
void RunRange(void* data) {
  auto& loop = *static_cast<Loop*>(data);
  const std::int64_t ranges =
      std::min<std::int64_t>(omp_get_num_threads(), (loop.count - 1) / loop.grain + 1);
  const std::int64_t length = (loop.count - 1) / ranges + 1;
  const std::int64_t first = omp_get_thread_num() * length;
  if (first >= loop.count) return;
  try {
    RunInParallelRegion(omp_get_thread_num(), first, std::min(loop.count, first + length), loop.body);
  } catch (...) {
    const std::lock_guard lock(loop.mutex);
    if (loop.first_error == nullptr) loop.first_error = std::current_exception();
  }
}

// As at::parallel_for(0, count, grain, body) does where it is compiled with OpenMP.
void Run(std::int64_t count, std::int64_t grain, Body body) {
  if (count <= 0) return;
  at::internal::lazy_init_num_threads();
  if (count <= grain || count == 1 || at::in_parallel_region() || at::get_num_threads() == 1) {
    return RunInParallelRegion(0, 0, count, body);
  }
  Loop loop{count, grain, body, {}, nullptr};
  GOMP_parallel(RunRange, &loop, /*threads=*/0, /*flags=*/0);  // 0: as many as at::set_num_threads said
  if (loop.first_error != nullptr) std::rethrow_exception(loop.first_error);
}

}  // namespace

void ParallelFor(std::int64_t count, std::int64_t numbers_each, Body body) {
  const std::int64_t grain =
      std::max<std::int64_t>(1, kNumbersOfThread / std::max<std::int64_t>(1, numbers_each));
  if (recorded == nullptr || count <= 0) return Run(count, grain, body);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  Run(count, grain, [&](std::int64_t first, std::int64_t last) {
    {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    }
    body(first, last);
  });
  recorded->push_back(static_cast<int>(threads.size()));
}

ThreadsOfLoops::ThreadsOfLoops() : outer_(recorded) { recorded = &counts_; }
ThreadsOfLoops::~ThreadsOfLoops() { recorded = outer_; }

}  // namespace plait
