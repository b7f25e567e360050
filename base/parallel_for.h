// A loop on LibTorch's threads.
//
//   ParallelFor(rows, /*numbers_each=*/width, [&](std::int64_t first, std::int64_t last) {
//     for (std::int64_t row = first; row < last; ++row) ...
//   });
//
// at::parallel_for is a template in LibTorch's headers and has threads only where it is compiled with OpenMP, in a
// program whose OpenMP is LibTorch's own. base:parallel_for is; other libraries call it (tools/check sees to it).
#ifndef PLAIT_BASE_PARALLEL_FOR_H_
#define PLAIT_BASE_PARALLEL_FOR_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"

namespace plait {

// Calls body(first, last) for ranges that make up [0, count), at the same time on up to at::get_num_threads() threads.
// `numbers_each`: numbers that an index costs, as an addition of two tensors counts them; a thread gets 32,768 or more.
// On the calling thread alone inside another parallel loop. The first exception of `body` is thrown again.
void ParallelFor(std::int64_t count, std::int64_t numbers_each,
                 absl::FunctionRef<void(std::int64_t first, std::int64_t last)> body);

// For tests: while it lives, the number of threads that ran ranges of each ParallelFor that this thread called. The
// latest one of a thread records.
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
