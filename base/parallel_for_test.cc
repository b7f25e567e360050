#include "base/parallel_for.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace plait {
namespace {

class ParallelForTest : public testing::Test {
 protected:
  ~ParallelForTest() override { at::set_num_threads(before_); }

 private:
  int before_ = at::get_num_threads();
};

// The threads that ran each index.
std::vector<std::thread::id> ThreadsOf(std::int64_t count, std::int64_t numbers_each) {
  std::vector<std::thread::id> of(count);
  ParallelFor(count, numbers_each, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      EXPECT_EQ(of[i], std::thread::id()) << "index " << i << " twice";
      of[i] = std::this_thread::get_id();
    }
  });
  return of;
}

std::size_t Distinct(const std::vector<std::thread::id>& threads) {
  EXPECT_EQ(std::count(threads.begin(), threads.end(), std::thread::id()), 0) << "an index was left out";
  return std::set<std::thread::id>(threads.begin(), threads.end()).size();
}

TEST_F(ParallelForTest, RunsOnAllThreads) {
  for (const int threads : {1, 2, 3, 5}) {
    at::set_num_threads(threads);
    EXPECT_EQ(Distinct(ThreadsOf(1001, 1 << 15)), threads);
  }
}

// 32,768 numbers each.
TEST_F(ParallelForTest, AThreadGetsEnoughToDo) {
  at::set_num_threads(4);
  EXPECT_EQ(Distinct(ThreadsOf(32768, 1)), 1);
  EXPECT_EQ(Distinct(ThreadsOf(32769, 1)), 2);
  EXPECT_EQ(Distinct(ThreadsOf(100, 328)), 2);
  EXPECT_EQ(Distinct(ThreadsOf(1, 1 << 20)), 1);
  EXPECT_EQ(Distinct(ThreadsOf(4, std::int64_t{1} << 40)), 4);
  EXPECT_EQ(Distinct(ThreadsOf(2, 0)), 1);
  EXPECT_TRUE(ThreadsOf(0, 8).empty());
}

// Autograd's threads, for example, that never set a number themselves.
TEST_F(ParallelForTest, FromAThreadThatIsNotTheFirst) {
  at::set_num_threads(3);
  std::size_t threads = 0;
  std::thread([&] { threads = Distinct(ThreadsOf(9, 1 << 15)); }).join();
  EXPECT_EQ(threads, 3);
}

TEST_F(ParallelForTest, ALoopInALoopIsOnItsThread) {
  at::set_num_threads(2);
  std::vector<std::size_t> inner(2);
  ParallelFor(2, 1 << 15, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) inner[i] = Distinct(ThreadsOf(8, 1 << 15));
  });
  EXPECT_THAT(inner, testing::Each(1));
}

TEST_F(ParallelForTest, ThrowsWhatAThreadThrows) {
  at::set_num_threads(3);
  const auto run = [] {
    ParallelFor(3, 1 << 15, [](std::int64_t first, std::int64_t) {
      if (first == 2) throw std::runtime_error("of the last");
    });
  };
  EXPECT_THROW(run(), std::runtime_error);
}

TEST_F(ParallelForTest, RecordsTheThreadsOfItsLoops) {
  at::set_num_threads(3);
  const ThreadsOfLoops outer;
  ThreadsOf(9, 1 << 15);
  {
    const ThreadsOfLoops inner;
    ThreadsOf(2, 1 << 15);
    EXPECT_THAT(inner.counts(), testing::ElementsAre(2));
  }
  ThreadsOf(9, 1);
  EXPECT_THAT(outer.counts(), testing::ElementsAre(3, 1));
}

// A second OpenMP runtime would have its own threads besides LibTorch's, and ignore at::set_num_threads.
TEST_F(ParallelForTest, OneOpenMpInTheProgram) {
  std::ifstream maps("/proc/self/maps");
  std::set<std::string> libraries;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("gomp") != std::string::npos || line.find("iomp") != std::string::npos) {
      libraries.insert(line.substr(line.find('/')));
    }
  }
  EXPECT_EQ(libraries.size(), 1) << testing::PrintToString(libraries);
}

}  // namespace
}  // namespace plait
