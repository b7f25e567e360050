#include "comm/mpi/cores.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace plait::comm {
namespace {

// A root folder with files of the kernel's in it.
class CoreQuotaTest : public ::testing::Test {
 protected:
  CoreQuotaTest() {
    std::string folder = (std::filesystem::temp_directory_path() / "coresXXXXXX").string();
    root_ = mkdtemp(folder.data());
  }
  ~CoreQuotaTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  std::string root_;
};

constexpr int kNoLimit = 1 << 30;

TEST_F(CoreQuotaTest, NoLimitWithoutControlGroups) { EXPECT_EQ(CoreQuota(root_), kNoLimit); }

TEST_F(CoreQuotaTest, OfAContainer) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/cpu.max", "250000 100000\n");
  EXPECT_EQ(CoreQuota(root_), 3);
}

TEST_F(CoreQuotaTest, TheTightestOfAllGroupsAbove) {
  Write("/proc/self/cgroup", "0::/system.slice/job.scope\n");
  Write("/sys/fs/cgroup/cpu.max", "max 100000\n");
  Write("/sys/fs/cgroup/system.slice/cpu.max", "200000 100000\n");
  Write("/sys/fs/cgroup/system.slice/job.scope/cpu.max", "800000 100000\n");
  EXPECT_EQ(CoreQuota(root_), 2);
}

TEST_F(CoreQuotaTest, MaxIsNoLimit) {
  Write("/proc/self/cgroup", "0::/job\n");
  Write("/sys/fs/cgroup/job/cpu.max", "max 100000\n");
  EXPECT_EQ(CoreQuota(root_), kNoLimit);
}

TEST_F(CoreQuotaTest, OfVersion1) {
  Write("/proc/self/cgroup", "4:cpu,cpuacct:/job\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CoreQuota(root_), 1);
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(CoreQuota(root_), kNoLimit);
}

TEST(UsableCores, FollowsTheAffinityOfTheProcess) {
  const CoreSet before = UsableCores();
  ASSERT_GE(CountOf(before), 1);
  int core = 0;
  while ((before[core / 64] >> (core % 64) & 1) == 0) ++core;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(CountOf(UsableCores()), 1);
  EXPECT_EQ(UsableCores()[core / 64], std::uint64_t{1} << (core % 64));
}

}  // namespace
}  // namespace plait::comm
