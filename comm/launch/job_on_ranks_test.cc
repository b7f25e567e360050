#include "comm/launch/job_on_ranks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "comm/testing/world.h"

namespace plait::comm {
namespace {

using testing::World;

// As an MPI launcher would tell it, with `ranks_per_host` ranks on hosts node0, node1, ...
Job Told(int ranks_per_host) {
  const int rank = World().rank(), size = World().size();
  Job job;
  job.launcher = LauncherKind::kOpenMpi;
  job.rank = rank;
  job.size = size;
  job.local_rank = rank % ranks_per_host;
  job.local_size = std::min(ranks_per_host, size);
  job.host = absl::StrCat("node", rank / ranks_per_host);
  job.boot_id = job.host;
  return job;
}

std::string Lines(const Job& job) { return absl::StrJoin(job.contradictions, "\n"); }

TEST(CompleteJob, AgreesWithTheRealEnvironment) {
  Job job = DetectJob();
  const Job told = job;
  CompleteJob(World(), BuildFingerprint("revision"), &job);
  EXPECT_EQ(Lines(job), "");
  EXPECT_EQ(job.rank, told.rank);
  EXPECT_EQ(job.size, told.size);
  EXPECT_EQ(job.local_rank, told.local_rank);
  EXPECT_EQ(job.local_size, told.local_size);
  EXPECT_EQ(job.node_id, 0);
  ASSERT_EQ(job.nodes(), 1);
  EXPECT_EQ(job.hosts[0].slots, World().size());
  EXPECT_TRUE(absl::StrContains(job.launch_command, absl::StrCat("-n ", World().size(), " ")))
      << job.launch_command;
}

TEST(CompleteJob, FindsWhoSharesAHost) {
  Job job = Told(/*ranks_per_host=*/2);
  job.local_rank = job.rank % 2;
  CompleteJob(World(), "build", &job);
  const int rank = World().rank(), size = World().size();
  EXPECT_EQ(job.node_id, rank / 2);
  EXPECT_EQ(job.local_rank, rank % 2);
  EXPECT_EQ(job.local_size, std::min(2, size - rank / 2 * 2));
  EXPECT_EQ(job.nodes(), (size + 1) / 2);
  EXPECT_EQ(Lines(job), "");
}

// Ranks dealt out to hosts in turn: node = rank % 2, which is not their order.
TEST(CompleteJob, OrderOfHostsIsThatOfTheirLowestRanks) {
  Job job = Told(1);
  const int rank = World().rank(), size = World().size();
  job.host = rank % 2 == 0 ? "zeta" : "alpha";
  job.boot_id = job.host;
  job.local_rank = rank / 2;
  job.local_size = rank % 2 == 0 ? (size + 1) / 2 : size / 2;
  CompleteJob(World(), "build", &job);
  EXPECT_EQ(job.hosts[0].host, "zeta");
  EXPECT_EQ(job.node_id, rank % 2);
  EXPECT_EQ(job.local_rank, rank / 2);
  EXPECT_EQ(Lines(job), "");
}

TEST(CompleteJob, ReportsAMpiThatKnowsNothingOfTheLauncher) {
  Job job = Told(World().size());
  job.size += 3;
  CompleteJob(World(), "build", &job);
  EXPECT_EQ(Lines(job),
            absl::StrCat("mpirun (Open MPI) says size ", World().size() + 3, ", MPI says ", World().size(),
                         ": expected the same; start the program with the launcher of the MPI that it "
                         "was built with"));
  EXPECT_EQ(job.size, World().size());
  Job derived = Told(World().size());
  derived.size += 3;
  derived.size_told = false;
  CompleteJob(World(), "build", &derived);
  EXPECT_EQ(Lines(derived), "");
}

// Rank 0 is where it should be; with two ranks or more, one line for all others.
TEST(CompleteJob, ReportsAnotherRankOrPlaceInOneLine) {
  const int size = World().size();
  const std::string others = size == 2 ? "rank 1: " : absl::StrCat("ranks 1-", size - 1, ": ");
  Job job = Told(size);
  job.rank = (size - job.rank) % size;
  CompleteJob(World(), "build", &job);
  const std::string middle = size % 2 == 0 && size > 2 ? "ranks 1,3: " : others;
  EXPECT_EQ(Lines(job), size <= 2
                            ? ""
                            : absl::StrCat(middle,
                                           "mpirun (Open MPI) says another rank than MPI: expected the same; "
                                           "start the program with the launcher of the MPI that it was built "
                                           "with"));
  job = Told(size);
  job.local_rank = size - 1 - job.local_rank;
  CompleteJob(World(), "build", &job);
  EXPECT_EQ(Lines(job), size == 1
                            ? ""
                            : "mpirun (Open MPI) counts the ranks of this host in another order than MPI: "
                              "expected the order of ranks; leave out options that reorder ranks");
  job = Told(size);
  if (job.rank > 0) job.local_size = size - 1;
  CompleteJob(World(), "build", &job);
  EXPECT_EQ(Lines(job), size == 1
                            ? ""
                            : absl::StrCat(others, "mpirun (Open MPI) says ", size - 1,
                                           " ranks on this host, there are ", size,
                                           ": expected the same; check that each host has a name of its own "
                                           "and is one node of the scheduler's"));
}

TEST(CompleteJob, BelievesALauncherThatTellsNothingOfHosts) {
  Job job = Told(/*ranks_per_host=*/2);
  job.local_rank = 0;
  job.local_size = World().size();
  job.local_told = false;
  CompleteJob(World(), "build", &job);
  EXPECT_EQ(Lines(job), "");
  EXPECT_EQ(job.local_rank, World().rank() % 2);
}

TEST(CompleteJob, ReportsRanksThatContradictThemselves) {
  Job job = Told(World().size());
  const int last = World().size() - 1;
  if (World().rank() == last) job.contradictions = {"half of an environment"};
  CompleteJob(World(), "build", &job);
  EXPECT_EQ(Lines(job),
            last == 0 ? "half of an environment" : absl::StrCat("rank ", last, ": half of an environment"));
}

TEST(CompleteJob, ReportsHostsOfOneName) {
  Job job = Told(1);
  job.host = "localhost";
  job.local_size = 1;
  CompleteJob(World(), "build", &job);
  EXPECT_EQ(job.nodes(), World().size());
  EXPECT_EQ(Lines(job), World().size() == 1
                            ? ""
                            : absl::StrCat(World().size(),
                                           " different hosts are called localhost: expected a name "
                                           "for each; set them with hostnamectl"));
}

TEST(CompleteJob, ReportsRanksOfDifferentBuilds) {
  Job job = Told(World().size());
  const bool odd = World().size() > 2 && World().rank() == 1;
  CompleteJob(World(), odd ? "abc 2" : "abc 1", &job);
  EXPECT_EQ(Lines(job),
            World().size() <= 2
                ? ""
                : absl::StrCat("different builds: rank 1 (node0) runs abc 2; the other ", World().size() - 1,
                               " ranks run abc 1: expected one build on all; copy the "
                               "same program to all hosts"));
}

TEST(OddBuilds, TheMajorityIsRightAndTheListShort) {
  EXPECT_EQ(OddBuilds({"a", "a"}, {"h", "h"}), "");
  EXPECT_TRUE(absl::StrContains(OddBuilds({"a", "b", "b"}, {"h", "i", "j"}),
                                "rank 0 (h) runs a; the other 2 ranks run b"));
  EXPECT_TRUE(
      absl::StrContains(OddBuilds({"a", "b"}, {"h", "i"}), "rank 1 (i) runs b; the other 1 ranks run a"));
  std::vector<std::string> builds(30, "a"), hosts(30, "h");
  for (int i = 0; i < 10; ++i) builds[i] = "b";
  EXPECT_TRUE(
      absl::StrContains(OddBuilds(builds, hosts), "rank 7 (h) runs b and 2 more ranks differ; the other 20"));
}

TEST(BuildFingerprint, IsTheSameEachTime) {
  EXPECT_EQ(BuildFingerprint("r"), BuildFingerprint("r"));
  EXPECT_NE(BuildFingerprint("r"), BuildFingerprint("s"));
  EXPECT_FALSE(absl::StrContains(BuildFingerprint("r"), "unreadable"));
}

TEST(CompleteJob, FirstLaunchCommandGoesToAll) {
  Job job = Told(World().size());
  if (World().rank() == 0) job.launch_command = "";
  if (World().rank() > 0) job.launch_command = absl::StrCat("mpirun ", World().rank());
  CompleteJob(World(), "build", &job);
  EXPECT_EQ(job.launch_command, World().size() == 1 ? "" : "mpirun 1");
}

}  // namespace
}  // namespace plait::comm
