#include "comm/launch/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "comm/launch/testing/recorded_environments.h"

namespace plait::comm {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Recorded;

constexpr char kNodeFile[] = "/var/spool/pbs/aux/2024084";
const char kNodes[] =
    "x3101c0s13b0n0.hsn.cm\nx3101c0s13b0n0.hsn.cm\nx3102c0s1b0n0.hsn.cm\nx3101c0s13b0n0.hsn.cm\n"
    "x3102c0s1b0n0.hsn.cm\nx3101c0s13b0n0.hsn.cm\nx3102c0s1b0n0.hsn.cm\nx3102c0s1b0n0.hsn.cm\n";

// Files: the node file of PBS, and "hosts", of this text.
JobSources SourcesOf(const Recorded& recorded, const std::string& host, const std::string& hosts = "") {
  return {.lookup = recorded.lookup(),
          .host = host,
          .boot_id = "boot",
          .devices = 0,
          .read_host_file = [hosts](const std::string& path) -> absl::StatusOr<std::vector<HostSlots>> {
            if (path == kNodeFile) return ParseHostFile(kNodes, path);
            if (path == "hosts") return ParseHostFile(hosts, path);
            return absl::NotFoundError(path + ": No such file or directory");
          },
          .ancestors = {{"/usr/bin/mpirun", "-n", "2", "train"}}};
}

std::string Hosts(const Job& job) {
  return absl::StrJoin(job.hosts, " ", [](std::string* out, const HostSlots& host) {
    out->append(host.host + ":" + std::to_string(host.slots));
  });
}

// One line per fact, so that a failure shows them all.
std::string Facts(const Job& job) {
  return std::string(NameOf(job.launcher)) + ", rank " + std::to_string(job.rank) + "/" +
         std::to_string(job.size) + ", local " + std::to_string(job.local_rank) + "/" +
         std::to_string(job.local_size) + ", node " + std::to_string(job.node_id) + "/" +
         std::to_string(job.nodes()) + " of " + std::to_string(job.allocated_nodes) + ", hosts " +
         Hosts(job) + ", " + std::to_string(job.slots) + " slots, " + NameOf(job.scheduler) + " job '" +
         job.job_id + "' on " + job.machine;
}

struct Case {
  const char* name;
  absl::string_view environment;
  const char* host;
  const char* facts;
};

class Launchers : public ::testing::TestWithParam<Case> {};

TEST_P(Launchers, AreRecognisedFromTheirEnvironment) {
  const Job job = DetectJob(SourcesOf(Recorded(GetParam().environment), GetParam().host));
  EXPECT_EQ(Facts(job), GetParam().facts);
  EXPECT_THAT(job.contradictions, IsEmpty());
}

constexpr Case kCases[] = {
    {"None", "HOME=/home/ada\n", "desk",
     "no launcher, rank 0/1, local 0/1, node 0/1 of 1, hosts desk:1, 0 slots, LOCAL job '' on desk"},
    {"OpenMpi", testing::kOpenMpi, "desk",
     "mpirun (Open MPI), rank 1/2, local 1/2, node 0/1 of 1, hosts desk:2, 0 slots, LOCAL job '' on desk"},
    {"Hydra", testing::kHydra, "desk",
     "mpiexec (MPICH, PMI), rank 1/2, local 1/2, node 0/1 of 1, hosts desk:2, 0 slots, LOCAL job '' on desk"},
    {"Srun", testing::kSrun, "frontier002.olcf.ornl.gov",
     "srun (Slurm), rank 2/3, local 0/1, node 1/2 of 2, hosts frontier001:2 frontier002:1, 3 slots, "
     "SLURM job '1' on Frontier"},
    {"SrunOnOneOfTwo", testing::kSrunOnOneOfTwo, "frontier002",
     "srun (Slurm), rank 0/1, local 0/1, node 0/1 of 2, hosts frontier002:1, 1 slots, SLURM job '2' on "
     "Frontier"},
    {"SbatchShell", testing::kSbatchShell, "frontier001",
     "no launcher, rank 0/1, local 0/1, node 0/2 of 2, hosts frontier001:2 frontier002:1, 3 slots, "
     "SLURM job '2' on Frontier"},
    {"SbatchShellWithoutTasks", testing::kSbatchShellWithoutTasks, "frontier001",
     "no launcher, rank 0/1, local 0/1, node 0/2 of 2, hosts frontier001:1 frontier002:1, 2 slots, "
     "SLURM job '3' on Frontier"},
    {"SallocShellOnTheLoginNode", testing::kSallocShell, "login1",
     "no launcher, rank 0/1, local 0/1, node -1/2 of 2, hosts frontier001:1 frontier002:1, 2 slots, "
     "SLURM job '4' on Frontier"},
    {"OpenMpiInSlurm", testing::kOpenMpiInSlurm, "frontier002",
     "mpirun (Open MPI), rank 2/3, local 0/1, node 1/2 of 2, hosts frontier001:1 frontier002:1, 4 slots, "
     "SLURM job '5' on Frontier"},
    {"PbsShell", testing::kPbsShell, "x3102c0s1b0n0",
     "no launcher, rank 0/1, local 0/1, node 1/2 of 2, hosts x3101c0s13b0n0.hsn.cm:4 x3102c0s1b0n0.hsn.cm:4, "
     "8 slots, PBS job '2024084.polaris-pbs-01.hsn.cm.polaris.alcf.anl.gov' on Polaris"},
    {"Pals", testing::kPals, "x3102c0s1b0n0",
     "mpiexec (Cray PALS), rank 6/8, local 2/4, node 1/2 of 2, hosts x3101c0s13b0n0.hsn.cm:4 "
     "x3102c0s1b0n0.hsn.cm:4, 8 slots, PBS job '2024084.polaris-pbs-01.hsn.cm.polaris.alcf.anl.gov' on "
     "Polaris"},
    {"Torchrun", testing::kTorchrun, "node2",
     "torchrun, rank 3/4, local 1/2, node 1/1 of 1, hosts node2:2, 0 slots, LOCAL job '' on node2"},
};
INSTANTIATE_TEST_SUITE_P(Job, Launchers, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(DetectJob, InteractiveStepOfSallocIsAShell) {
  // LaunchParameters=use_interactive_step: srun --interactive --preserve-env --pty $SHELL.
  const Recorded shell =
      Recorded(testing::kSbatchShell).With("SLURM_STEP_ID=4294967290\nSLURM_STEPID=4294967290");
  const Job job = DetectJob(SourcesOf(shell, "frontier001"));
  EXPECT_EQ(job.launcher, LauncherKind::kNone);
  EXPECT_EQ(job.size, 1);
  EXPECT_THAT(job.contradictions, IsEmpty());
}

TEST(DetectJob, SingleTaskOfSrunWithoutPmiIsAShell) {
  const Recorded shell = Recorded(testing::kSrunOnOneOfTwo).With("PMI_FD\nPMI_JOBID\nPMI_RANK\nPMI_SIZE");
  const Job job = DetectJob(SourcesOf(shell, "frontier002"));
  EXPECT_EQ(job.launcher, LauncherKind::kNone);
  EXPECT_EQ(Hosts(job), "frontier001:1 frontier002:1");
  EXPECT_THAT(job.contradictions, IsEmpty());
}

TEST(DetectJob, PalsWithoutSizeCountsHosts) {
  const Recorded pmix =
      Recorded(testing::kPals)
          .With("PMI_SIZE\nPMI_RANK\nPMI_LOCAL_SIZE\nPBS_NODEFILE\nPMIX_RANK=6\nRANK=6\nWORLD_SIZE=8");
  const Job job =
      DetectJob(SourcesOf(pmix.With("PALS_RANKID=2\nPMIX_RANK=2\nRANK=2\nPALS_NODEID=0"), "x3101c0s13b0n0"));
  EXPECT_EQ(job.launcher, LauncherKind::kPals);
  EXPECT_EQ(job.size, 4);
  EXPECT_FALSE(job.size_told);
  EXPECT_THAT(job.contradictions, IsEmpty());
  EXPECT_EQ(DetectLauncher(pmix.lookup()).size, 7);  // rank 6 where no node file tells of other hosts
}

TEST(DetectJob, KnowsWhatTheLauncherTells) {
  EXPECT_TRUE(DetectJob(SourcesOf(Recorded(testing::kHydra), "desk")).local_told);
  EXPECT_FALSE(DetectJob(SourcesOf(Recorded(testing::kHydra).With("MPI_LOCALNRANKS"), "desk")).local_told);
  EXPECT_TRUE(DetectJob(SourcesOf(Recorded(testing::kSrun), "frontier002")).local_told);
}

TEST(DetectJob, NodeFileThatOnlyTheFirstNodeHasIsNoContradiction) {
  JobSources sources = SourcesOf(Recorded(testing::kPals), "x3102c0s1b0n0");
  sources.read_host_file = [](const std::string& path) -> absl::StatusOr<std::vector<HostSlots>> {
    return absl::NotFoundError(path);
  };
  const Job job = DetectJob(sources);
  EXPECT_EQ(job.node_id, 1);
  EXPECT_THAT(job.contradictions, IsEmpty());
}

TEST(DetectJob, SlurmsNameOfTheHostCounts) {
  const Job job = DetectJob(SourcesOf(Recorded(testing::kSrun), "container17"));
  EXPECT_EQ(job.node_id, 1);
  EXPECT_THAT(job.contradictions, IsEmpty());
}

TEST(DetectJob, HostFileOfTheUsersSelects) {
  const Recorded shell = Recorded(testing::kPbsShell).With("HOSTFILE=hosts");
  const Job job = DetectJob(SourcesOf(shell, "x3102c0s1b0n0", "x3102c0s1b0n0 slots=2\n"));
  EXPECT_EQ(Hosts(job), "x3102c0s1b0n0:2");
  EXPECT_EQ(job.host_file, "hosts");
  EXPECT_EQ(job.node_id, 0);
  EXPECT_THAT(job.contradictions, IsEmpty());
}

TEST(DetectJob, DevicesComeFromTheEnvironmentOrTheHost) {
  JobSources sources = SourcesOf(Recorded(testing::kOpenMpi), "desk");
  sources.devices = 4;
  EXPECT_EQ(DetectJob(sources).devices_per_node, 4);
  sources.lookup = Recorded(testing::kSrun).With("SLURM_GPUS_ON_NODE=2").lookup();
  EXPECT_EQ(DetectJob(sources).devices_per_node, 2);
}

TEST(DetectJob, DevicesThatCudaHidesDoNotCount) {
  const auto devices = [](absl::string_view environment, const std::string& visible) {
    JobSources sources = SourcesOf(Recorded(environment).With("CUDA_VISIBLE_DEVICES=" + visible), "desk");
    sources.devices = 4;
    return DetectJob(sources).devices_per_node;
  };
  EXPECT_EQ(devices("", "2,3"), 2);
  EXPECT_EQ(devices("", "GPU-8f1b,GPU-11aa,GPU-02e0"), 3);
  EXPECT_EQ(devices("", "0,1,2,3,4,5"), 4);
  EXPECT_EQ(devices("", "1,-1,0"), 1);
  EXPECT_EQ(devices("", "NoDevFiles"), 0);
  EXPECT_EQ(devices("", ""), 0);
  EXPECT_EQ(devices(testing::kOpenMpi, "1"), 4);  // of this rank alone
}

TEST(DetectJob, FindsTheLaunchCommand) {
  JobSources sources = SourcesOf(Recorded(testing::kOpenMpi), "desk");
  EXPECT_EQ(DetectJob(sources).launch_command, "/usr/bin/mpirun -n 2 train");
  sources.ancestors = {
      {"bash", "wrap.sh"}, {"hydra_pmi_proxy", "--x"}, {"mpiexec", "-env", "A", "b c", "it's"}, {"bash"}};
  EXPECT_EQ(DetectJob(sources).launch_command, "mpiexec -env A 'b c' 'it'\\''s'");
  sources.ancestors = {
      {"python3", "/usr/bin/torchrun", "--nnodes=1"}, {"srun", "-n", "2"}, {"bash"}, {"srun", "x"}};
  EXPECT_EQ(DetectJob(sources).launch_command, "srun -n 2");
  sources.ancestors = {{"bash"}, {"sshd"}};
  EXPECT_EQ(DetectJob(sources).launch_command, "");
  sources.lookup = Recorded(testing::kOpenMpi).With("PLAIT_LAUNCH_COMMAND=launch -n 2 train").lookup();
  EXPECT_EQ(DetectJob(sources).launch_command, "launch -n 2 train");
}

TEST(DetectJob, NamesMachines) {
  const std::pair<const char*, const char*> table[] = {
      {"frontier00123", "Frontier"}, {"sophia-gpu-01", "Sophia"},
      {"thetagpu07", "ThetaGPU"},    {"x1921c1s2b0n0", "SunSpot"},
      {"x3101c0s13b0n0", "Polaris"}, {"x4102c5s1b0n0", "Aurora"},
      {"nid001234", "Perlmutter"},   {"nidhogg", "nidhogg"},
      {"login1", "login1"},          {"xbox", "xbox"},
  };
  for (const auto& [host, machine] : table) {
    EXPECT_EQ(DetectJob(SourcesOf(Recorded(""), host)).machine, machine);
  }
  const auto named = [](absl::string_view variables, const char* host) {
    return DetectJob(SourcesOf(Recorded(variables), host)).machine;
  };
  EXPECT_EQ(named("NERSC_HOST=perlmutter", "login1"), "Perlmutter");
  EXPECT_EQ(named("LMOD_SYSTEM_NAME=frontier", "login1"), "Frontier");
  EXPECT_EQ(named("PBS_O_HOST=sirius-login-01", "x3000c0s1b0n0"), "Sirius");
  // Another site's Cray.
  EXPECT_EQ(named("SLURM_CLUSTER_NAME=lumi", "nid001234"), "nid001234");
}

struct Contradiction {
  const char* name;
  absl::string_view environment;
  const char* changes;
  const char* host;
  const char* line;  // "": nothing is wrong
};

class Contradictions : public ::testing::TestWithParam<Contradiction> {};

TEST_P(Contradictions, AreReportedInOneLine) {
  const Contradiction& given = GetParam();
  const Recorded recorded = Recorded(given.environment).With(given.changes);
  const Job job = DetectJob(SourcesOf(recorded, given.host, "x3102c0s1b0n0\nx3999c0s1b0n0\ndesk9\n"));
  EXPECT_EQ(absl::StrJoin(job.contradictions, "\n"), given.line);
}

constexpr Contradiction kContradictions[] = {
    {"RankBeyondSize", testing::kOpenMpi, "OMPI_COMM_WORLD_RANK=2\nPMIX_RANK=2", "desk",
     "OMPI_COMM_WORLD_RANK=2 with OMPI_COMM_WORLD_SIZE=2: expected a rank from 0 to 1; start the program "
     "with mpirun "
     "(Open MPI) or unset OMPI_COMM_WORLD_RANK"},
    {"LocalRankBeyondLocalSize", testing::kOpenMpi, "OMPI_COMM_WORLD_LOCAL_RANK=2", "desk",
     "mpirun (Open MPI): local rank 2 of 2 on this host with 2 ranks in all; expected local rank < local "
     "size <= "
     "size; start the program with mpirun (Open MPI) alone"},
    {"NoNumber", testing::kOpenMpi, "OMPI_COMM_WORLD_SIZE=two", "desk",
     "OMPI_COMM_WORLD_SIZE=two: expected an integer; start the program with mpirun (Open MPI) or unset "
     "OMPI_COMM_WORLD_RANK"},
    {"OtherRankOfPmix", testing::kOpenMpi, "PMIX_RANK=0", "desk",
     "PMIX_RANK=0 but rank 1 from mpirun (Open MPI): expected the same; start the program with one launcher"},
    {"SingletonOfOpenMpiUnderHydra", testing::kHydra, "PMIX_RANK=0", "desk", ""},
    {"MpirunInTorchrun", testing::kOpenMpi, "RANK=5\nWORLD_SIZE=8", "desk",
     "OMPI_COMM_WORLD_RANK=1 of 2 (mpirun (Open MPI)) but RANK=5 of 8 (torchrun): expected the same rank and "
     "size; "
     "start the program with one launcher and unset the other's variables"},
    {"TorchrunVariablesOfTheUsersOwn", testing::kOpenMpi, "RANK=1\nWORLD_SIZE=2\nLOCAL_RANK=1", "desk", ""},
    {"SrunInTorchrun", testing::kSrun, "RANK=5\nWORLD_SIZE=8", "frontier002",
     "SLURM_PROCID=2 of 3 (srun (Slurm)) but RANK=5 of 8 (torchrun): expected the same rank and size; "
     "start the "
     "program with one launcher and unset the other's variables"},
    {"SizesOfPalsAndPmi", testing::kPals, "PALS_SIZE=4\nPALS_RANKID=2\nPALS_NODEID=1", "x3102c0s1b0n0",
     "PALS_RANKID=2 of 4 (mpiexec (Cray PALS)) but PMI_RANK=6 of 8 (mpiexec (MPICH, PMI)): expected the same "
     "rank and "
     "size; start the program with one launcher and unset the other's variables"},
    {"PartOfAnAllocation", testing::kOpenMpiInSlurm, "OMPI_COMM_WORLD_SIZE=4\nOMPI_UNIVERSE_SIZE=8",
     "frontier002", ""},
    {"HalfAStep", "SLURM_PROCID=2\nSLURM_STEP_ID=0\n", "", "desk",
     "SLURM_PROCID=2 is set, SLURM_NTASKS is not: half of what srun (Slurm) sets; start the program with "
     "srun "
     "(Slurm) or unset SLURM_PROCID"},
    {"StepWithoutTasks", testing::kSrun,
     "SLURM_NTASKS\nSLURM_NPROCS\nSLURM_STEP_NUM_TASKS\nPMI_RANK\nPMI_SIZE", "frontier002",
     "SLURM_PROCID=2 is set, SLURM_NTASKS is not: half of what srun (Slurm) sets; start the program with "
     "srun "
     "(Slurm) or unset SLURM_PROCID"},
    {"LeftOverRank", "SLURM_PROCID=2\nSLURM_NTASKS=4\n", "", "desk",
     "SLURM_PROCID=2 is set, SLURM_STEP_ID is not: half of what srun (Slurm) sets; start the program with "
     "srun "
     "(Slurm) or unset SLURM_PROCID"},
    {"NodeListMissing", testing::kSallocShell, "SLURM_JOB_NODELIST\nSLURM_NODELIST", "login1",
     "SLURM_JOB_ID=4 is set, SLURM_JOB_NODELIST is not: half a Slurm environment; start the job with salloc, "
     "sbatch "
     "or srun, or unset SLURM_JOB_ID"},
    {"NodeListBroken", testing::kSallocShell, "SLURM_JOB_NODELIST=f[1-2\nSLURM_NODELIST=f[1-2", "login1",
     "host list f[1-2: [ without ]; expected something like node[01-04,07],login1; repair SLURM_JOB_NODELIST "
     "or "
     "unset SLURM_*"},
    {"MoreHostsThanNodes", testing::kSallocShell, "SLURM_JOB_NODELIST=frontier[001-003]", "login1",
     "SLURM_JOB_NODELIST=frontier[001-003] names 3 hosts but SLURM_JOB_NUM_NODES=2: expected the same "
     "number; unset "
     "SLURM_* or start the job again"},
    {"FewerHostsThanNodes", testing::kSrun, "SLURM_STEP_NUM_NODES=3", "frontier002",
     "SLURM_STEP_NODELIST=frontier[001-002] names 2 hosts but SLURM_STEP_NUM_NODES=3: expected the same "
     "number; unset "
     "SLURM_* or start the job again"},
    {"CountsOfOtherHosts", testing::kSbatchShell, "SLURM_TASKS_PER_NODE=1(x3)", "frontier001",
     "SLURM_TASKS_PER_NODE=1(x3) counts 3 hosts, SLURM_NODELIST names 2: expected the same; unset SLURM_* or "
     "start "
     "the job again"},
    {"CountsBroken", testing::kSbatchShell, "SLURM_TASKS_PER_NODE=2(y2)", "frontier001",
     "SLURM_TASKS_PER_NODE: counts per node 2(y2): 2(y2) is none; expected something like 4(x2),1; start the "
     "job "
     "again"},
    {"TasksInAllAndByNode", testing::kSrun, "SLURM_STEP_TASKS_PER_NODE=2,2", "frontier002",
     "SLURM_STEP_TASKS_PER_NODE=2,2 sums to 4 tasks but SLURM_STEP_NUM_TASKS=3: expected the same number; "
     "unset "
     "SLURM_* or start the job again"},
    {"NodeOfAnotherName", testing::kSrun, "SLURM_NODEID=0", "frontier002",
     "srun (Slurm) calls this host node 0, the list of hosts has frontier002 as node 1: expected the same; "
     "start the "
     "program again with srun (Slurm)"},
    {"UnlistedHost", testing::kPals, "", "x3999c0s1b0n0",
     "rank 6 runs on x3999c0s1b0n0, which is not among the 2 hosts of the job (x3101c0s13b0n0.hsn.cm, ...); "
     "give the "
     "launcher the job's own hosts or unset the list"},
    {"HostFileOfUnknownHosts", testing::kPbsShell, "HOSTFILE=hosts", "x3102c0s1b0n0",
     "HOSTFILE=hosts names x3999c0s1b0n0, desk9, which PBS has not given to job "
     "2024084.polaris-pbs-01.hsn.cm.polaris.alcf.anl.gov; remove them from the file or unset HOSTFILE"},
    {"HostFileMissing", testing::kPbsShell, "HOSTFILE=nowhere", "x3102c0s1b0n0",
     "HOSTFILE: nowhere: No such file or directory; expected the job's hosts, one a line; write the file or "
     "unset "
     "HOSTFILE"},
    {"PbsWithoutNodeFile", testing::kPbsShell, "PBS_NODEFILE", "x3102c0s1b0n0",
     "PBS_JOBID=2024084.polaris-pbs-01.hsn.cm.polaris.alcf.anl.gov is set, PBS_NODEFILE is not: half a PBS "
     "environment; start from the job's own shell or set PBS_NODEFILE"},
    {"TwoSchedulers", testing::kSallocShell, "PBS_JOBID=7", "login1",
     "SLURM_JOB_ID=4 and PBS_JOBID=7 are both set: expected one scheduler; Slurm's is taken, unset the "
     "variables of "
     "the other job"},
    {"HalfOfTorchrun", "RANK=1\n", "", "desk",
     "RANK=1 is set, WORLD_SIZE is not: half of what torchrun sets; start the program with torchrun or unset "
     "RANK"},
};
INSTANTIATE_TEST_SUITE_P(Job, Contradictions, ::testing::ValuesIn(kContradictions),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(DetectJob, UnknownHostsOfTheUsersFileAreNotUsed) {
  const Recorded shell = Recorded(testing::kPbsShell).With("HOSTFILE=hosts");
  const Job job = DetectJob(SourcesOf(shell, "x3102c0s1b0n0", "desk9\n"));
  EXPECT_EQ(job.nodes(), 2);
  EXPECT_EQ(job.host_file, kNodeFile);
}

TEST(IndexOfHost, DomainsDoNotMatterAddressesDo) {
  const std::vector<HostSlots> hosts = {{"a.site.org"}, {"b"}, {"10.0.0.1"}};
  EXPECT_EQ(IndexOfHost(hosts, "a"), 0);
  EXPECT_EQ(IndexOfHost(hosts, "b.site.org"), 1);
  EXPECT_EQ(IndexOfHost(hosts, "10.0.0.1"), 2);
  EXPECT_EQ(IndexOfHost(hosts, "10.0.0.2"), -1);
  EXPECT_EQ(IndexOfHost({{"localhost"}}, "a"), 0);
}

TEST(DetectJob, OfThisProcess) {
  const Job job = DetectJob();
  EXPECT_GE(job.size, 1);
  EXPECT_FALSE(job.host.empty());
  EXPECT_FALSE(job.boot_id.empty());
}

}  // namespace
}  // namespace plait::comm
