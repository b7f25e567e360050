// Memory of fictitious nodes, from files as the kernel writes them.
#include "parallel/plan/available_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace plait::parallel {
namespace {

constexpr char kMeminfo[] =
    "MemTotal:       65536000 kB\nMemFree:         1000000 kB\nMemAvailable:    2000000 kB\n";

class AvailableMemoryTest : public testing::Test {
 protected:
  AvailableMemoryTest()
      : root_(std::filesystem::path(std::getenv("TEST_TMPDIR")) /
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    Write("proc/meminfo", kMeminfo);
  }
  void Write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  NodeMemory Available() { return AvailableMemory((root_ / "proc").string(), (root_ / "cgroup").string()); }
  std::string Path(const std::string& file) { return (root_ / file).string(); }

 private:
  std::filesystem::path root_;
};

TEST_F(AvailableMemoryTest, IsMemAvailableWithoutGroups) {
  EXPECT_EQ(Available().bytes, 2000000LL * 1024);
  EXPECT_EQ(Available().limited_by, "MemAvailable");
}

TEST_F(AvailableMemoryTest, IsUnknownWithoutProc) { EXPECT_EQ(AvailableMemory("/none", "/none").bytes, -1); }

TEST_F(AvailableMemoryTest, TakesTheTightestGroupOfVersion2) {
  Write("proc/self/cgroup", "0::/slurm/job_7/step_0\n");
  Write("cgroup/slurm/job_7/step_0/memory.max", "max\n");
  Write("cgroup/slurm/job_7/step_0/memory.current", "100\n");
  Write("cgroup/slurm/job_7/memory.max", "5000000\n");
  Write("cgroup/slurm/job_7/memory.current", "1000000\n");
  Write("cgroup/slurm/job_7/memory.stat", "anon 600000\ninactive_file 300000\nactive_file 1\n");
  Write("cgroup/slurm/memory.max", "90000000\n");
  Write("cgroup/slurm/memory.current", "1000000\n");
  EXPECT_EQ(Available().bytes, 5000000 - (1000000 - 300000));
  EXPECT_EQ(Available().limited_by, Path("cgroup/slurm/job_7/memory.max"));
}

TEST_F(AvailableMemoryTest, InAContainerTheGroupIsTheRoot) {
  Write("proc/self/cgroup", "0::/docker/0123\n");
  Write("cgroup/memory.max", "4000000\n");
  Write("cgroup/memory.current", "5000000\n");
  EXPECT_EQ(Available().bytes, 0);
}

TEST_F(AvailableMemoryTest, TakesVersion1) {
  Write("proc/self/cgroup", "9:cpuset:/\n5:cpu,memory:/job\n0::/\n");
  Write("cgroup/memory/job/memory.limit_in_bytes", "7000000\n");
  Write("cgroup/memory/job/memory.usage_in_bytes", "2000000\n");
  EXPECT_EQ(Available().bytes, 5000000);
}

TEST_F(AvailableMemoryTest, ALimitAboveTheNodeIsNone) {
  Write("proc/self/cgroup", "0::/job\n");
  Write("cgroup/job/memory.max", "9223372036854771712\n");
  Write("cgroup/job/memory.current", "5\n");
  EXPECT_EQ(Available().limited_by, "MemAvailable");
}

}  // namespace
}  // namespace plait::parallel
