#include "tools/doctor_checks/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_EQ(MpiVersion("something else\nmore"), "something else");
}

TEST(MemoryAvailable, TakesTheSmallerOfHostAndContainer) {
  const std::string proc =
      FolderWith("meminfo", "MemTotal: 8000 kB\nMemFree: 10 kB\nMemAvailable:    4000 kB\n");
  EXPECT_EQ(MemoryAvailable(proc, "/nowhere"), 4000 * 1024);
  const std::string group = FolderWith("cgroup/memory.max", "3000000\n");
  FolderWith("cgroup/memory.current", "1000000\n");
  EXPECT_EQ(MemoryAvailable(proc, group), 2000000);
  FolderWith("cgroup/memory.current", "5000000\n");
  EXPECT_EQ(MemoryAvailable(proc, group), 0);
  FolderWith("cgroup/memory.max", "max\n");
  EXPECT_EQ(MemoryAvailable(proc, group), 4000 * 1024);
  EXPECT_EQ(MemoryAvailable("/nowhere", group), kUnknown);
}

TEST(Probe, OfThisMachine) {
  const comm::Job job = comm::DetectJob();
  const RankFacts facts = Probe(ProcessProbeSources("/tmp"), job);
  EXPECT_EQ(facts.host, job.host);
  EXPECT_THAT(facts.mpi_library, ::testing::StartsWith("Open MPI "));
  EXPECT_EQ(facts.mpi_launcher, facts.mpi_library);
  EXPECT_GT(facts.memory_available_bytes, 1 << 20);
  EXPECT_GT(facts.open_files_limit, 10);
  EXPECT_GT(facts.cores, 0);
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

}  // namespace
}  // namespace plait::doctor
