// Tests that results are bitwise identical on any number of threads, and that these threads really run.
#ifndef PLAIT_BASE_TESTING_SAME_ON_THREADS_H_
#define PLAIT_BASE_TESTING_SAME_ON_THREADS_H_

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "base/parallel_for.h"

namespace plait {

// Calls run() with 1, 2 and 3 threads; expects equal results, `loops` calls of ParallelFor, and that each of these ran
// on all threads (its input must be large enough for that).
inline void ExpectSameOnThreads(int loops, const std::function<std::vector<at::Tensor>()>& run) {
  const int before = at::get_num_threads();
  std::vector<at::Tensor> expected;
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    const ThreadsOfLoops recorded;
    const std::vector<at::Tensor> results = run();
    EXPECT_THAT(recorded.counts(), ::testing::SizeIs(loops));
    EXPECT_THAT(recorded.counts(), ::testing::Each(threads)) << "of " << threads << " threads";
    if (threads == 1) expected = results;
    ASSERT_EQ(results.size(), expected.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_TRUE(results[i].equal(expected[i])) << "result " << i << ", " << threads << " threads";
    }
  }
  at::set_num_threads(before);
}

}  // namespace plait

#endif  // PLAIT_BASE_TESTING_SAME_ON_THREADS_H_
