// The pages of a freed block are reused by the next allocation of its size.
#include "base/keep_freed_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace plait::base {
namespace {

constexpr std::size_t kBytes = std::size_t{96} << 20;  // above what malloc keeps by itself

// Number of minor page faults of this process.
long PageFaults() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

void UseAndFree() {
  void* block = std::malloc(kBytes);
  std::memset(block, 1, kBytes);
  // Prevents the compiler from removing the block.
  asm volatile("" : : "r"(block) : "memory");
  std::free(block);
}

TEST(KeepFreedMemoryTest, TheNextBlockIsOfPagesThatAreThere) {
  UseAndFree();
  const long before = PageFaults();
  UseAndFree();
  EXPECT_GT(PageFaults() - before, 20) << "the C library keeps such blocks anyway; the test shows nothing";
  KeepFreedMemory();
  UseAndFree();
  const long kept = PageFaults();
  UseAndFree();
  EXPECT_LT(PageFaults() - kept, 20);
}

// The kernel shows in VmFlags ("hg") that huge pages were requested for a mapping.
bool HeapAsksForHugePages() {
  std::ifstream maps("/proc/self/smaps");
  bool in_heap = false, asks = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ')) in_heap = line.find("[heap]") != std::string::npos;
    asks = asks || (in_heap && line.rfind("VmFlags:", 0) == 0 && line.find(" hg") != std::string::npos);
  }
  return asks;
}

TEST(KeepFreedMemoryTest, TheHeapAsksForHugePages) {
  KeepFreedMemory();
  std::ifstream setting("/sys/kernel/mm/transparent_hugepage/enabled");
  EXPECT_EQ(HeapAsksForHugePages(), setting.good()) << "a kernel without them is asked in vain";
}

}  // namespace
}  // namespace plait::base
