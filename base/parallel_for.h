// A loop on LibTorch's threads.
//
//   ParallelFor(rows, /*numbers_each=*/width, [&](std::int64_t first, std::int64_t last) {
//     for (std::int64_t row = first; row < last; ++row) ...
//   });
//
// at::parallel_for is a template in LibTorch's headers: compiled without OpenMP it runs on one thread, and compiled by
// clang with OpenMP on the threads of a second runtime beside LibTorch's. ParallelFor calls LibTorch's own runtime
// (libgomp) with any compiler; use it instead of at::parallel_for (tools/check enforces this).
#ifndef PLAIT_BASE_PARALLEL_FOR_H_
#define PLAIT_BASE_PARALLEL_FOR_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"

namespace plait {

// Calls body(first, last) for disjoint ranges that cover [0, count), on up to at::get_num_threads() threads.
// `numbers_each`: cost of one index, in element-wise operations; a thread gets at least 32,768 of them.
// Runs on the calling thread alone inside another parallel loop. Rethrows the first exception of `body`.
void ParallelFor(std::int64_t count, std::int64_t numbers_each,
                 absl::FunctionRef<void(std::int64_t first, std::int64_t last)> body);

// For tests: while it lives, records for each ParallelFor called by this thread how many threads ran it. If several are
// alive on a thread, the latest records.
class ThreadsOfLoops {
 public:
  ThreadsOfLoops();
  ~ThreadsOfLoops();
  ThreadsOfLoops(const ThreadsOfLoops&) = delete;
  ThreadsOfLoops& operator=(const ThreadsOfLoops&) = delete;

  const std::vector<int>& counts() const { return counts_; }

 private:
  std::vector<int> counts_;
  std::vector<int>* outer_;
};

}  // namespace plait

#endif  // PLAIT_BASE_PARALLEL_FOR_H_
