#include "comm/launch/relaunch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/text.h"

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

TEST(RelaunchPlan, OtherStarters) {
  EXPECT_EQ(
      Command({.starter = Starter::kHydra, .executable = "mpiexec"}, {.ranks = 2, .as_root = true}, {"a b"}),
      "mpiexec -envall -genv OMP_NUM_THREADS 1 -n 2 -bind-to none /bin/train 'a b'");
  EXPECT_EQ(
      Command({.starter = Starter::kSrun, .executable = "srun", .mpi_plugin = "pmix"}, {.ranks = 2}, {}),
      "env OMP_NUM_THREADS=1 srun --export=ALL --kill-on-bad-exit=1 --quit-on-interrupt --mpi=pmix "
      "--overcommit -n 2 -c 1 --cpu-bind=none /bin/train");
}

TEST(RelaunchCommand, RefusesNoRanksAndTooMany) {
  char program[] = "train";
  char* argv[] = {program, nullptr};
  EXPECT_EQ(RelaunchCommand(0, argv).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RelaunchCommand(1 << 20, argv).status().code(), absl::StatusCode::kInvalidArgument);
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  EXPECT_TRUE(CheckRanksOfHost(32 * cores).ok());
  EXPECT_EQ(
      CheckRanksOfHost(32 * cores + 1).message(),
      absl::StrCat(
          "--nproc=", 32 * cores + 1, ": this machine has ", cores,
          " cores; expected at most 32 ranks for each, or ranks that mpirun starts on several machines"));
}

}  // namespace
}  // namespace plait::comm
