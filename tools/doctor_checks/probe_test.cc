#include "tools/doctor_checks/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "comm/testing/world.h"

namespace plait::doctor {
namespace {

using comm::testing::World;

// A folder of this test's and rank's own, with the given file in it.
std::string FolderWith(const std::string& file, const std::string& text) {
  const std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) /
      ("probe_test_" + std::to_string(World().rank()) + "_" + std::to_string(World().size())) / file;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
  return path.parent_path().string();
}

ProbeSources NothingInstalled() {
  ProbeSources sources;
  sources.lookup = [](const char*) -> const char* { return nullptr; };
  sources.commands = {.real_path = [](const std::string&) { return std::string(); },
                      .output = [](const std::vector<std::string>&) { return std::string(); }};
  sources.folder = "/nowhere";
  sources.proc = "/nowhere";
  sources.cgroup = "/nowhere";
  sources.shared_memory = "/nowhere";
  return sources;
}

TEST(MpiVersion, ReadsWhatLibrariesAndLaunchersSay) {
  EXPECT_EQ(
      MpiVersion("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022"),
      "Open MPI 4.1.4");
  EXPECT_EQ(MpiVersion("mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n"),
            "Open MPI 4.1.4");
  EXPECT_EQ(MpiVersion("mpirun (Open MPI) 5.0.0rc12\n"), "Open MPI 5.0.0rc12");
  EXPECT_EQ(MpiVersion("HYDRA build details:\n    Version:                                 4.0.2\n"),
            "MPICH 4.0.2");
  EXPECT_EQ(MpiVersion("MPICH Version:\t4.0.2\nMPICH Release date: ..."), "MPICH 4.0.2");
  EXPECT_EQ(
      MpiVersion("MPI VERSION    : CRAY MPICH version 8.1.28.29 (ANL base 3.4a2)\nMPI BUILD INFO : ..."),
      "MPICH 8.1.28.29");
  EXPECT_EQ(MpiVersion("mpiexec version 1.2.12 revision 4ad0a1a"), "PALS 1.2.12");
  EXPECT_EQ(MpiVersion("something else\nmore"), "something else");
}

// A job's control group below the root, whose page cache the kernel gives back.
TEST(Probe, MemoryIsWhatTheControlGroupLeaves) {
  ProbeSources sources = NothingInstalled();
  sources.proc = FolderWith("meminfo", "MemTotal: 8000 kB\nMemFree: 10 kB\nMemAvailable:    4000 kB\n");
  FolderWith("self/cgroup", "0::/job\n");
  FolderWith("cgroup/job/memory.max", "3000000\n");
  FolderWith("cgroup/job/memory.current", "2900000\n");
  FolderWith("cgroup/job/memory.stat", "anon 100000\ninactive_file 2500000\n");
  sources.cgroup = sources.proc + "/cgroup";
  EXPECT_EQ(Probe(sources, {}).memory_available_bytes, 3000000 - (2900000 - 2500000));
  FolderWith("cgroup/job/memory.max", "max\n");
  EXPECT_EQ(Probe(sources, {}).memory_available_bytes, 4000 * 1024);
}

TEST(Probe, OfThisMachine) {
  const comm::Job job = comm::DetectJob();
  const RankFacts facts = Probe(ProcessProbeSources("/tmp"), job);
  EXPECT_EQ(facts.host, job.host);
  EXPECT_THAT(facts.mpi_library, ::testing::StartsWith("Open MPI "));
  EXPECT_EQ(facts.mpi_launcher, facts.mpi_library);
  EXPECT_GT(facts.memory_available_bytes, 1 << 20);
  EXPECT_GT(facts.open_files_limit, 10);
  EXPECT_FALSE(facts.cores.empty());
  EXPECT_GT(facts.folder_free_bytes, 0);
  EXPECT_EQ(facts.omp_num_threads, "1");
}

TEST(Probe, OfAMachineWithoutAnything) {
  comm::Job job;
  job.host = "no-such-host.invalid";
  const RankFacts facts = Probe(NothingInstalled(), job);
  EXPECT_EQ(facts.mpi_launcher, "");
  EXPECT_EQ(facts.resolved_address, "");
  EXPECT_EQ(facts.memory_available_bytes, kUnknown);
  EXPECT_EQ(facts.shared_memory_bytes, kUnknown);
  EXPECT_EQ(facts.folder_free_bytes, kUnknown);
  EXPECT_FALSE(facts.has_gnuplot);
  EXPECT_FALSE(facts.utf8);
  EXPECT_EQ(facts.omp_num_threads, "");
}

TEST(ProbeRanks, GathersAllOfThem) {
  const std::vector<RankFacts> ranks = ProbeRanks(ProcessProbeSources("/tmp"), comm::DetectJob(), World());
  ASSERT_EQ(ranks.size(), static_cast<std::size_t>(World().size()));
  for (int rank = 0; rank < World().size(); ++rank) {
    EXPECT_EQ(ranks[rank].rank, rank);
    EXPECT_EQ(ranks[rank].local_size, World().size());
  }
}

// Each rank on a core of its own, as far as there are any.
TEST(ProbeRanks, CountsTheCoresOfAHost) {
  cpu_set_t before, all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  std::memset(&all, 0xff, sizeof all);
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);  // the kernel takes those that there are
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  const int host_cores = CPU_COUNT(&all);
  int own = World().rank() % host_cores, core = 0;
  while (!CPU_ISSET(core, &all) || own-- > 0) ++core;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const std::vector<RankFacts> ranks = ProbeRanks(ProcessProbeSources("/tmp"), comm::DetectJob(), World());
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(ranks[World().rank()].cores, std::vector<int>{core});
  for (const RankFacts& rank : ranks) EXPECT_EQ(rank.host_cores, std::min(World().size(), host_cores));
}

}  // namespace
}  // namespace plait::doctor
