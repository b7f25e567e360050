#include "tools/doctor_checks/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plait::doctor {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kGiB = 1 << 30;

// Two ranks on each of node1 and node2, where all is well.
Ranks Healthy() {
  Ranks ranks(4);
  for (int rank = 0; rank < 4; ++rank) {
    RankFacts& facts = ranks[rank];
    facts.rank = rank;
    facts.size = 4;
    facts.local_size = 2;
    facts.host = rank < 2 ? "node1" : "node2";
    facts.boot_id = facts.host;
    facts.mpi_library = facts.mpi_launcher = "Open MPI 4.1.4";
    facts.launcher_kind = "mpirun (Open MPI)";
    facts.resolved_address = "10.0.0.1";
    facts.memory_available_bytes = 16 * kGiB;
    facts.open_files_limit = 4096;
    facts.shared_memory_bytes = kGiB;
    facts.cores = {0, 1, 2, 3, 4, 5, 6, 7};
    facts.host_cores = 8;
    facts.omp_num_threads = "4";
    facts.folder_free_bytes = 100 * kGiB;
    facts.has_gnuplot = facts.utf8 = true;
  }
  return ranks;
}

Ranks HealthyWithDevices() {
  Ranks ranks = Healthy();
  for (RankFacts& rank : ranks) {
    rank.devices = 2;
    rank.nccl_version = "2.28.9";
    rank.built_with_cuda = true;
  }
  return ranks;
}

TEST(CheckAll, SaysOkWhereAllIsWell) {
  for (const Ranks& ranks : {Healthy(), HealthyWithDevices()}) {
    const std::vector<Finding> findings = CheckAll(ranks, 4, {}, "/scratch");
    EXPECT_EQ(findings.size(), 15u);
    for (const Finding& finding : findings) {
      EXPECT_EQ(finding.severity, Severity::kOk) << Line(finding);
      EXPECT_EQ(finding.remedy, "");
      EXPECT_NE(finding.found, "");
    }
    EXPECT_EQ(ExitCode(findings), 0);
  }
}

TEST(CheckDevices, ProcessorsAloneAreFine) {
  EXPECT_EQ(Line(CheckDevices(Healthy())), "OK       GPU: no GPU; CPU runs");
}

// One thing that is wrong, on rank 3 unless `break_it` says otherwise.
struct Case {
  const char* name;
  void (*break_it)(Ranks& ranks);
  const char* line;
};

class Wrong : public ::testing::TestWithParam<Case> {};

TEST_P(Wrong, IsOneLineOfTheReportAndNothingElseChanges) {
  Ranks ranks = HealthyWithDevices();
  GetParam().break_it(ranks);
  std::vector<std::string> lines;
  for (const Finding& finding : CheckAll(ranks, 4, {}, "/scratch")) {
    if (finding.severity != Severity::kOk) lines.push_back(Line(finding));
  }
  EXPECT_THAT(lines, ::testing::ElementsAre(GetParam().line));
}

const Case kCases[] = {
    {"NoMpirun", [](Ranks& ranks) { ranks[3].mpi_launcher = ""; },
     "WARNING  MPI: rank 3 (node2): no mpirun or mpiexec that runs is on the PATH; install openmpi-bin or "
     "load the "
     "machine's MPI module"},
    {"OtherVersion", [](Ranks& ranks) { ranks[3].mpi_launcher = "Open MPI 5.0.1"; },
     "WARNING  MPI: rank 3 (node2): the program has Open MPI 4.1.4, mpirun on the PATH is Open MPI 5.0.1; "
     "put the "
     "mpirun of Open MPI 4.1.4 first on the PATH"},
    {"OtherMpi", [](Ranks& ranks) { ranks[3].mpi_launcher = "MPICH 4.0.2"; },
     "ERROR    MPI: rank 3 (node2): the program has Open MPI 4.1.4, mpirun on the PATH is MPICH 4.0.2; put "
     "the mpirun "
     "of Open MPI 4.1.4 first on the PATH"},
    {"FewerRanks", [](Ranks& ranks) { ranks.pop_back(); },
     "ERROR    ranks: 3 ranks on 2 hosts, asked for 4; start the program with the launcher of the MPI that "
     "it was "
     "built with"},
    {"NameDoesNotResolve", [](Ranks& ranks) { ranks[3].resolved_address = ""; },
     "ERROR    host names: rank 3 (node2): the host's own name does not resolve; add it to /etc/hosts or the "
     "name "
     "service"},
    {"NameDoesNotResolveOnTheOnlyHost",
     [](Ranks& ranks) {
       for (RankFacts& rank : ranks) rank.host = rank.boot_id = "node1";
       ranks[3].resolved_address = "";
     },
     "WARNING  host names: rank 3 (node1): the host's own name does not resolve; add it to /etc/hosts or the "
     "name "
     "service"},
    {"OneNameForTwoHosts",
     [](Ranks& ranks) {
       for (RankFacts& rank : ranks) rank.host = "localhost";
     },
     "ERROR    host names: ranks 0-3 (localhost): several hosts have this name; give each host a name "
     "(hostnamectl)"},
    {"ClockAhead", [](Ranks& ranks) { ranks[3].clock_offset_seconds = 0.5; },
     "WARNING  clocks: rank 3 (node2): +0.500 s from rank 0's clock; synchronise the hosts' clocks (chrony "
     "or ntpd); "
     "traces correct for it, times of files do not"},
    {"ClockOfYesterday", [](Ranks& ranks) { ranks[3].clock_offset_seconds = -86400; },
     "ERROR    clocks: rank 3 (node2): -86400.000 s from rank 0's clock; synchronise the hosts' clocks "
     "(chrony or "
     "ntpd); traces correct for it, times of files do not"},
    {"MoreRanksThanCores",
     [](Ranks& ranks) {
       ranks[2].cores = ranks[3].cores = {0};
       ranks[2].host_cores = ranks[3].host_cores = 1;
       ranks[2].omp_num_threads = ranks[3].omp_num_threads = "1";
     },
     "WARNING  cores: ranks 2-3 (node2): 2 ranks share 1 cores; start fewer ranks on a host: those that wait "
     "take time "
     "from those that compute"},
    {"ThreadsNotSet", [](Ranks& ranks) { ranks[3].omp_num_threads = ""; },
     "WARNING  threads: rank 3 (node2): OMP_NUM_THREADS is not set: each of 2 ranks starts 8 threads; set "
     "OMP_NUM_THREADS=4"},
    {"ThreadsNoNumber", [](Ranks& ranks) { ranks[3].omp_num_threads = "many"; },
     "WARNING  threads: rank 3 (node2): OMP_NUM_THREADS=many is no number; set OMP_NUM_THREADS=4"},
    {"TooManyThreads", [](Ranks& ranks) { ranks[3].omp_num_threads = "8"; },
     "WARNING  threads: rank 3 (node2): 2 ranks with OMP_NUM_THREADS=8 share 8 cores; set OMP_NUM_THREADS=4"},
    {"TooManyThreadsOfAList", [](Ranks& ranks) { ranks[3].omp_num_threads = "8,1"; },
     "WARNING  threads: rank 3 (node2): 2 ranks with OMP_NUM_THREADS=8 share 8 cores; set OMP_NUM_THREADS=4"},
    {"ThreadsNoList", [](Ranks& ranks) { ranks[3].omp_num_threads = "2,many"; },
     "WARNING  threads: rank 3 (node2): OMP_NUM_THREADS=2,many is no number; set OMP_NUM_THREADS=4"},
    {"MoreThreadsThanBoundCores", [](Ranks& ranks) { ranks[3].cores = {5}; },
     "WARNING  threads: rank 3 (node2): OMP_NUM_THREADS=4, but bound to 1 core; set OMP_NUM_THREADS=1"},
    {"LittleMemory", [](Ranks& ranks) { ranks[3].memory_available_bytes = kGiB; },
     "WARNING  memory: rank 3 (node2): 512 MiB available for each; start fewer ranks on a host or ask the "
     "scheduler "
     "for more memory"},
    {"NoMemory", [](Ranks& ranks) { ranks[3].memory_available_bytes = 20 * kMiB; },
     "ERROR    memory: rank 3 (node2): 10 MiB available for each; start fewer ranks on a host or ask the "
     "scheduler "
     "for more memory"},
    {"MemoryUnknown", [](Ranks& ranks) { ranks[3].memory_available_bytes = kUnknown; },
     "WARNING  memory: rank 3 (node2): /proc/meminfo cannot be read; mount /proc"},
    {"FewOpenFiles", [](Ranks& ranks) { ranks[3].open_files_limit = 256; },
     "WARNING  open files: rank 3 (node2): a process may have 256 (80 are needed); raise the limit (ulimit "
     "-n 65536, "
     "or limits.conf)"},
    {"TooFewOpenFiles", [](Ranks& ranks) { ranks[3].open_files_limit = 79; },
     "ERROR    open files: rank 3 (node2): a process may have 79 (80 are needed); raise the limit (ulimit -n "
     "65536, or "
     "limits.conf)"},
    {"SmallSharedMemory", [](Ranks& ranks) { ranks[3].shared_memory_bytes = 15 * kMiB; },
     "WARNING  shared memory: rank 3 (node2): 15 MiB free in /dev/shm for 2 ranks; remove what is left "
     "there, or "
     "start the container with --shm-size=1g"},
    {"NoSharedMemory", [](Ranks& ranks) { ranks[3].shared_memory_bytes = kUnknown; },
     "WARNING  shared memory: rank 3 (node2): there is no /dev/shm; mount a tmpfs there; ranks of a host use "
     "it"},
    {"LittleSpace", [](Ranks& ranks) { ranks[3].folder_free_bytes = 500 * kMiB; },
     "WARNING  disk: rank 3 (node2): 500 MiB free in /scratch; make room or name another folder with "
     "--folder"},
    {"NoSpace", [](Ranks& ranks) { ranks[3].folder_free_bytes = 0; },
     "ERROR    disk: rank 3 (node2): 0 B free in /scratch; make room or name another folder with --folder"},
    {"NoFolder", [](Ranks& ranks) { ranks[3].folder_free_bytes = kUnknown; },
     "ERROR    disk: rank 3 (node2): there is no folder /scratch; make it, or name another with --folder; on "
     "several "
     "hosts it must be shared"},
    {"NoGnuplot", [](Ranks& ranks) { ranks[0].has_gnuplot = false; },
     "WARNING  gnuplot: rank 0 (node1): gnuplot is not on the PATH; install gnuplot-nox for plots; runs go "
     "on without"},
    {"NoUtf8", [](Ranks& ranks) { ranks[0].utf8 = false; },
     "WARNING  locale: rank 0 (node1): neither LC_ALL nor LC_CTYPE nor LANG names UTF-8: output is plain "
     "ASCII; set "
     "LANG=C.UTF-8"},
    {"NoDriver", [](Ranks& ranks) { ranks[3].driver_error = "libcuda.so.1 was not found"; },
     "ERROR    GPU: rank 3 (node2): 2 devices, but the driver does not load: libcuda.so.1 was not found; "
     "install the "
     "driver's libcuda.so.1 or pass it into the container"},
    {"NoDevicesOnOneHost", [](Ranks& ranks) { ranks[2].devices = ranks[3].devices = 0; },
     "ERROR    GPU: ranks 2-3 (node2): no GPU here, but on other hosts; give the job hosts of one kind"},
    {"BuildWithoutCuda", [](Ranks& ranks) { ranks[3].built_with_cuda = false; },
     "WARNING  GPU: rank 3 (node2): 2 devices, but this build has no CUDA; install nvcc and build again"},
    {"NoNccl", [](Ranks& ranks) { ranks[3].nccl_version = ""; },
     "ERROR    NCCL: rank 3 (node2): libnccl.so.2 does not load: the programs of this build do not start; "
     "install NCCL or put its folder on LD_LIBRARY_PATH"},
    {"NoNcclOnRank0", [](Ranks& ranks) { ranks[0].nccl_version = ""; },
     "ERROR    NCCL: rank 0 (node1): libnccl.so.2 does not load: the programs of this build do not start; "
     "install NCCL or put its folder on LD_LIBRARY_PATH"},
    {"TwoNccls", [](Ranks& ranks) { ranks[3].nccl_version = "2.20.5"; },
     "ERROR    NCCL: rank 3 (node2): version 2.20.5, rank 0 has 2.28.9; install one version of NCCL on all "
     "hosts"},
};
INSTANTIATE_TEST_SUITE_P(Doctor, Wrong, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// As "mpirun -n 2" on a host of two cores binds them.
TEST(CheckCores, RanksThatAreBoundToCoresOfTheirOwnShareNone) {
  Ranks ranks = Healthy();
  for (RankFacts& rank : ranks) {
    rank.cores = {rank.rank % 2};
    rank.omp_num_threads = "";
  }
  CountHostCores(ranks);
  EXPECT_EQ(Line(CheckCores(ranks)), "OK       cores: 2 ranks on 2 cores of node1");
  EXPECT_EQ(Line(CheckThreads(ranks)), "OK       threads: for each rank 1 cores");
  for (RankFacts& rank : ranks) rank.omp_num_threads = "1";
  EXPECT_EQ(CheckThreads(ranks).severity, Severity::kOk);
}

TEST(CheckThreads, TheFirstNumberOfAListCounts) {
  Ranks ranks = Healthy();
  ranks[3].omp_num_threads = "4,2";
  EXPECT_EQ(CheckThreads(ranks).severity, Severity::kOk) << Line(CheckThreads(ranks));
}

TEST(CountHostCores, IsTheUnionOfAHostAndOfNoOther) {
  Ranks ranks = Healthy();
  ranks[0].cores = {0, 1, 2};
  ranks[1].cores = {2, 3};
  ranks[2].cores = ranks[3].cores = {7};
  for (RankFacts& rank : ranks) rank.host = "localhost";  // two hosts of one name
  CountHostCores(ranks);
  EXPECT_EQ(ranks[0].host_cores, 4);
  EXPECT_EQ(ranks[1].host_cores, 4);
  EXPECT_EQ(ranks[3].host_cores, 1);
}

TEST(CheckContradictions, EachIsAnErrorWithItsRemedy) {
  const std::vector<Finding> findings = CheckContradictions(
      {"ranks 2-3: SLURM_PROCID=2 is set, SLURM_NTASKS is not; unset SLURM_PROCID", "odd"});
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(
      Line(findings[0]),
      "ERROR    environment: ranks 2-3: SLURM_PROCID=2 is set, SLURM_NTASKS is not; unset SLURM_PROCID");
  EXPECT_EQ(findings[0].remedy, "unset SLURM_PROCID");
  EXPECT_EQ(Line(findings[1]), "ERROR    environment: odd");
  EXPECT_EQ(ExitCode(findings), 1);
}

TEST(Judge, NamesAllRanksAndTheWorstRemedy) {
  Ranks ranks = Healthy();
  ranks[1].folder_free_bytes = 500 * kMiB;
  ranks[2].folder_free_bytes = ranks[3].folder_free_bytes = 0;
  EXPECT_EQ(Line(CheckFreeSpace(ranks, "/scratch")),
            "ERROR    disk: rank 1 (node1): 500 MiB free in /scratch, ranks 2-3 (node2): 0 B free in "
            "/scratch; make "
            "room or name another folder with --folder");
  // The other way round.
  ranks = Healthy();
  ranks[0].mpi_launcher = "MPICH 4.0.2";
  ranks[1].mpi_launcher = "";
  const Finding finding = CheckMpi(ranks);
  EXPECT_EQ(finding.severity, Severity::kError);
  EXPECT_EQ(finding.remedy, "put the mpirun of Open MPI 4.1.4 first on the PATH");
  for (RankFacts& rank : ranks) rank.mpi_launcher = "PALS 1.2.12";
  EXPECT_EQ(CheckMpi(ranks).severity, Severity::kOk);
}

TEST(CheckClocks, AnOffsetWithinTheUncertaintyIsNone) {
  Ranks ranks = Healthy();
  ranks[3].clock_offset_seconds = 0.5;
  ranks[3].clock_uncertainty_seconds = 0.495;
  EXPECT_EQ(CheckClocks(ranks).severity, Severity::kOk);
}

TEST(Report, JsonGoesThereAndBack) {
  const std::vector<Finding> findings = {{Severity::kOk, "a", "fine", ""},
                                         {Severity::kWarning, "b", "q\"uote", "do\nit"},
                                         {Severity::kError, "c", "broken \xff", "mend"}};
  const auto read = FindingsFromJson(ToJson(findings));
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->size(), 3u);
  EXPECT_EQ(Line((*read)[1]), Line(findings[1]));
  EXPECT_EQ((*read)[0].severity, Severity::kOk);
  EXPECT_EQ((*read)[2].severity, Severity::kError);
  EXPECT_THAT((*read)[2].found, HasSubstr("broken "));
  EXPECT_FALSE(FindingsFromJson("{\"a").ok());
}

TEST(RankFacts, GoThereAndBack) {
  RankFacts facts = HealthyWithDevices()[2];
  facts.clock_offset_seconds = -1.25e-6;
  facts.host =
      "n\xc3\xb6"
      "de";
  const RankFacts read = FromText(ToText(facts));
  EXPECT_EQ(ToText(read), ToText(facts));
  EXPECT_EQ(read.clock_offset_seconds, facts.clock_offset_seconds);
  EXPECT_EQ(read.memory_available_bytes, facts.memory_available_bytes);
}

}  // namespace
}  // namespace plait::doctor
