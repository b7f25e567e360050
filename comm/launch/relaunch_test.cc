#include "comm/launch/relaunch.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/processors.h"
#include "base/text.h"
#include "comm/launch/testing/recorded_environments.h"

namespace plait::comm {
namespace {

const FoundStarter kMpirun = {.starter = Starter::kOpenMpi, .executable = "mpirun"};

std::string Command(const FoundStarter& found, const RelaunchOptions& options,
                    const std::vector<std::string>& arguments) {
  return base::ShellCommand(LaunchCommand(RelaunchPlan(found, options, "/bin/train", arguments)));
}

TEST(RelaunchPlan, KeepsTheProgramsArgumentsBehindTheProgram) {
  EXPECT_EQ(Command(kMpirun, {.ranks = 4, .as_root = true, .set_one_thread = true}, {"--", "-n", "--lr=1"}),
            "mpirun --allow-run-as-root --oversubscribe --bind-to none -n 4 -x OMP_NUM_THREADS=1 /bin/train "
            "-- -n --lr=1");
}

TEST(RelaunchPlan, AddsNothingThatIsNotNeeded) {
  EXPECT_EQ(Command(kMpirun, {.ranks = 2, .as_root = false, .set_one_thread = false}, {}),
            "mpirun --oversubscribe --bind-to none -n 2 /bin/train");
}

// Open MPI would take the hosts of the job, of which this machine may be none.
TEST(RelaunchPlan, StaysOnThisMachineInAnAllocation) {
  EXPECT_EQ(Command(kMpirun, {.ranks = 2, .host_in_job = "n7", .set_one_thread = false}, {}),
            "mpirun --mca ras '^slurm,gridengine,tm,lsf,alps' --mca plm '^slurm,tm,lsf,alps' --oversubscribe "
            "--bind-to none -n 2 /bin/train");
  EXPECT_EQ(Command({.starter = Starter::kSrun, .executable = "srun", .mpi_plugin = "pmix"},
                    {.ranks = 2, .host_in_job = "n7"}, {}),
            "env OMP_NUM_THREADS=1 srun --export=ALL --kill-on-bad-exit=1 --quit-on-interrupt --mpi=pmix "
            "--overcommit --nodes=1 --nodelist=n7 -n 2 -c 1 --cpu-bind=none /bin/train");
  EXPECT_NE(HostInJob(testing::Recorded(testing::kSallocShell).lookup()), "");
  EXPECT_NE(HostInJob(testing::Recorded(testing::kPbsShell).lookup()), "");
  EXPECT_NE(HostInJob(testing::Recorded("PE_HOSTFILE=/var/spool/hosts\n").lookup()), "");
  EXPECT_EQ(HostInJob(testing::Recorded("SLURM_JOB_ID=3\nSLURMD_NODENAME=n7\n").lookup()), "n7");
  EXPECT_EQ(HostInJob(testing::Recorded("HOME=/home/ada\n").lookup()), "");
}

TEST(RelaunchPlan, OtherStarters) {
  EXPECT_EQ(
      Command({.starter = Starter::kHydra, .executable = "mpiexec"}, {.ranks = 2, .as_root = true}, {"a b"}),
      "mpiexec -envall -genv OMP_NUM_THREADS 1 -n 2 -bind-to none /bin/train 'a b'");
  EXPECT_EQ(
      Command({.starter = Starter::kSrun, .executable = "srun", .mpi_plugin = "pmix"}, {.ranks = 2}, {}),
      "env OMP_NUM_THREADS=1 srun --export=ALL --kill-on-bad-exit=1 --quit-on-interrupt --mpi=pmix "
      "--overcommit -n 2 -c 1 --cpu-bind=none /bin/train");
}

// Each of its processes would start ranks of its own.
TEST(RelaunchCommand, RefusesTorchrun) {
  char program[] = "train";
  char* argv[] = {program, nullptr};
  setenv("RANK", "1", 1);
  setenv("WORLD_SIZE", "2", 1);
  EXPECT_EQ(RelaunchCommand(1, argv).status().code(), absl::StatusCode::kFailedPrecondition);
  unsetenv("RANK");
  unsetenv("WORLD_SIZE");
}

TEST(RelaunchCommand, RefusesNoRanksAndTooMany) {
  char program[] = "train";
  char* argv[] = {program, nullptr};
  EXPECT_EQ(RelaunchCommand(0, argv).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RelaunchCommand(1 << 20, argv).status().code(), absl::StatusCode::kInvalidArgument);
  const int cores = base::UsableProcessors();
  // Of a process that may have so many files open, as mpirun needs them.
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  const absl::Status most = CheckRanksOfHost(32 * cores);
  EXPECT_EQ(most.ok(), files.rlim_max >= static_cast<rlim_t>(64 + 8 * 32 * cores)) << most;
  EXPECT_EQ(CheckRanksOfHost(32 * cores + 1).message(),
            absl::StrCat("--nproc=", 32 * cores + 1, ": this process may use ", cores,
                         " processors; expected at most 32 ranks for each, or ranks that mpirun starts on "
                         "several machines"));
}

}  // namespace
}  // namespace plait::comm
