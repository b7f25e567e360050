#include "comm/launch/dist_info.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "comm/gathered_text.h"
#include "comm/launch/job_on_ranks.h"
#include "comm/testing/world.h"

namespace plait::comm {
namespace {

using testing::World;

// Rank 6 of 8 on the second of two hosts with four devices each.
Job TwoHosts() {
  Job job;
  job.launcher = LauncherKind::kPals;
  job.rank = 6;
  job.size = 8;
  job.local_rank = 2;
  job.local_size = 4;
  job.node_id = 1;
  job.hosts = {{"x3101c0s13b0n0", 4}, {"x3102c0s1b0n0", 4}};
  job.slots = 16;
  job.host = "x3102c0s1b0n0";
  job.host_file = "/var/spool/pbs/aux/2024084";
  job.scheduler = Scheduler::kPbs;
  job.machine = "Polaris";
  job.devices_per_node = 4;
  job.launch_command = "mpiexec -n 8 -ppn 4 train";
  return job;
}

TEST(DistInfoBlock, HasTheEighteenKeysInOrder) {
  EXPECT_EQ(DistInfoBlock(TwoHosts(), CudaDevice(TwoHosts(), "nccl"), /*utf8=*/true),
            R"([dist_info]:
  • DEVICE=cuda
  • DEVICE_ID=cuda:2
  • DISTRIBUTED_BACKEND=nccl
  • GPUS_PER_NODE=4
  • HOSTS=['x3101c0s13b0n0', 'x3102c0s1b0n0']
  • HOSTFILE=/var/spool/pbs/aux/2024084
  • HOSTNAME=x3102c0s1b0n0
  • LOCAL_RANK=2
  • MACHINE=Polaris
  • NUM_NODES=2
  • NGPUS=8
  • NGPUS_AVAILABLE=8
  • NODE_ID=1
  • RANK=6
  • SCHEDULER=PBS
  • WORLD_SIZE_TOTAL=16
  • WORLD_SIZE_IN_USE=8
  • LAUNCH_CMD=mpiexec -n 8 -ppn 4 train
)");
}

TEST(DistInfoBlock, OnProcessorsNothingClaimsADevice) {
  Job job = TwoHosts();
  const auto entries = DistInfo(job, CpuDevice(job));
  EXPECT_EQ(entries[0].second, "cpu");
  EXPECT_EQ(entries[2].second, "mpi");
  EXPECT_EQ(entries[3], std::make_pair(std::string("GPUS_PER_NODE"), std::string("0")));
  EXPECT_EQ(entries[10], std::make_pair(std::string("NGPUS"), std::string("0")));
  EXPECT_EQ(entries[11].second, "8");
  job.size = 1;
  EXPECT_EQ(CpuDevice(job).transport, "self");
}

TEST(DistInfoBlock, WithoutUtf8ItIsPlainAscii) {
  const std::string text = DistInfoBlock(TwoHosts(), CpuDevice(TwoHosts()), /*utf8=*/false);
  for (const char c : text) EXPECT_GE(c, 0);
  EXPECT_TRUE(absl::StrContains(text, "\n  * DEVICE=cpu\n"));
}

TEST(DistInfoBlock, CutsLongListsOfHosts) {
  Job job = TwoHosts();
  job.hosts.assign(1000, {"n", 1});
  const std::string hosts = DistInfo(job, CpuDevice(job))[4].second;
  EXPECT_TRUE(absl::EndsWith(hosts, ", 'n', and 936 more]")) << hosts;
}

TEST(LocaleIsUtf8, TheFirstVariableThatIsSetCounts) {
  struct Case {
    const char *lc_all, *lc_ctype, *lang;
    bool utf8;
  };
  for (const Case& given : {Case{nullptr, nullptr, nullptr, false}, Case{nullptr, nullptr, "C.UTF-8", true},
                            Case{nullptr, nullptr, "de_DE.utf8", true}, Case{"C", nullptr, "C.UTF-8", false},
                            Case{"", "POSIX", "C.UTF-8", false}, Case{"", "", "en_US.UTF-8", true}}) {
    const bool utf8 = LocaleIsUtf8([&](const char* name) -> const char* {
      return std::string(name) == "LC_ALL"     ? given.lc_all
             : std::string(name) == "LC_CTYPE" ? given.lc_ctype
                                               : given.lang;
    });
    EXPECT_EQ(utf8, given.utf8) << (given.lang == nullptr ? "" : given.lang);
  }
}

TEST(DeviceLine, NamesDeviceStrategyAndTransport) {
  Job job = TwoHosts();
  job.rank = 0;
  EXPECT_EQ(DeviceLine(job, CpuDevice(job), "DDP"),
            "[0/8] Using device='cpu' with backend='DDP' + 'mpi' for distributed training.");
}

TEST(RankLine, HasLastIndexesNotSizes) {
  EXPECT_EQ(RankLine(TwoHosts(), CpuDevice(TwoHosts())),
            "[device='cpu'][rank=6/7][local_rank=2/3][node=1/1]");
}

TEST(RankLine, OfAMeshHasAllCoordinates) {
  const auto mesh = DeviceMesh::Create(World(), {{"pp", 2}, {"dp", 2}, {"tp", 2}});
  ASSERT_TRUE(mesh.ok());
  const std::vector<std::string> lines = GatherText(World(), RankLine("node7", *mesh));
  EXPECT_EQ(lines[3], "['node7'][3/7] [pp:0/1][dp:1/1][tp:1/1]");
  EXPECT_EQ(lines[6], "['node7'][6/7] [pp:1/1][dp:1/1][tp:0/1]");
}

// Of the ranks that mpirun really started.
TEST(DistInfo, IsTrueOfTheseRanks) {
  Job job = DetectJob();
  CompleteJob(World(), "build", &job);
  for (const std::string& text : GatherText(World(), DistInfoBlock(job, CpuDevice(job), true))) {
    EXPECT_TRUE(absl::StrContains(text, "NODE_ID=0\n")) << text;
    EXPECT_TRUE(absl::StrContains(text, "WORLD_SIZE_IN_USE=8\n")) << text;
    EXPECT_TRUE(absl::StrContains(text, "LAUNCH_CMD=mpirun ")) << text;
    const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
    EXPECT_EQ(lines.size(), 19u);
  }
}

}  // namespace
}  // namespace plait::comm
