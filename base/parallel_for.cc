#include "base/parallel_for.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <thread>

#ifndef _OPENMP
#error "base/parallel_for.cc must be compiled with -fopenmp: without it every loop runs on one thread"
#endif

namespace plait {
namespace {

using Body = absl::FunctionRef<void(std::int64_t first, std::int64_t last)>;

constexpr std::int64_t kNumbersOfThread = 32768;  // LibTorch's at::internal::GRAIN_SIZE

thread_local std::vector<int>* recorded = nullptr;

// The lambda's type makes this instantiation of LibTorch's template the only one of its name in a program.
void Run(std::int64_t count, std::int64_t grain, Body body) {
  at::parallel_for(0, count, grain, [&](std::int64_t first, std::int64_t last) { body(first, last); });
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
