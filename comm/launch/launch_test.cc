#include <gtest/gtest.h>

#include <map>

#include "comm/launch/launcher.h"

namespace plait::comm {
namespace {

template <int kCase>
const char* Environment(const char* name) {
  static const std::map<std::string, std::string> kCases[] = {
      {},
      {{"OMPI_COMM_WORLD_RANK", "3"},
       {"OMPI_COMM_WORLD_SIZE", "8"},
       {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
       {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
       {"SLURM_PROCID", "0"},
       {"SLURM_NTASKS", "1"}},
      {{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}},
      {{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "6"}, {"SLURM_STEP_ID", "0"}, {"SLURM_LOCALID", "2"}},
      {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "6"}},  // the shell of an allocation
      {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}},
      {{"RANK", "one"}, {"WORLD_SIZE", "2"}},
      {{"PALS_RANKID", "6"},
       {"PMI_RANK", "6"},
       {"PMI_SIZE", "8"},
       {"PALS_LOCAL_RANKID", "2"},
       {"PALS_LOCAL_SIZE", "4"}},
      {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"PMI_LOCAL_RANK", "1"}, {"PMI_LOCAL_SIZE", "2"}},
      {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_STEP_ID", "0"}},  // srun --pty bash
      {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_STEP_ID", "0"}, {"PMIX_RANK", "0"}},
      {{"RANK", "0"}, {"WORLD_SIZE", "1"}},
  };
  const auto found = kCases[kCase].find(name);
  return found == kCases[kCase].end() ? nullptr : found->second.c_str();
}

void Expect(const Launcher& got, LauncherKind kind, int rank, int size, int local_rank, int local_size) {
  EXPECT_EQ(got.kind, kind);
  EXPECT_EQ(got.rank, rank);
  EXPECT_EQ(got.size, size);
  EXPECT_EQ(got.local_rank, local_rank);
  EXPECT_EQ(got.local_size, local_size);
}

TEST(DetectLauncher, TellsLaunchersApart) {
  Expect(DetectLauncher(Environment<0>), LauncherKind::kNone, 0, 1, 0, 1);
  Expect(DetectLauncher(Environment<1>), LauncherKind::kOpenMpi, 3, 8, 1, 2);
  Expect(DetectLauncher(Environment<2>), LauncherKind::kPmi, 2, 4, 0, 4);
  Expect(DetectLauncher(Environment<3>), LauncherKind::kSlurm, 5, 6, 2, 6);
  Expect(DetectLauncher(Environment<4>), LauncherKind::kNone, 0, 1, 0, 1);
  Expect(DetectLauncher(Environment<5>), LauncherKind::kTorchrun, 1, 2, 1, 2);
  Expect(DetectLauncher(Environment<6>), LauncherKind::kNone, 0, 1, 0, 1);
  Expect(DetectLauncher(Environment<7>), LauncherKind::kPals, 6, 8, 2, 4);
  Expect(DetectLauncher(Environment<8>), LauncherKind::kPmi, 3, 4, 1, 2);
  Expect(DetectLauncher(Environment<9>), LauncherKind::kNone, 0, 1, 0, 1);
  Expect(DetectLauncher(Environment<10>), LauncherKind::kSlurm, 0, 1, 0, 1);
}

TEST(DetectLauncher, OnlyMpiLaunchersStartMpi) {
  EXPECT_TRUE(DetectLauncher(Environment<1>).starts_mpi());
  EXPECT_FALSE(DetectLauncher(Environment<0>).starts_mpi());
  EXPECT_FALSE(DetectLauncher(Environment<5>).starts_mpi());
}

TEST(CheckTorchrun, ItsProcessesCannotFindEachOther) {
  EXPECT_EQ(
      CheckTorchrun(DetectLauncher(Environment<5>)).message(),
      "torchrun (WORLD_SIZE=2) starts no MPI, without which its processes cannot find each other; start "
      "the program with mpirun, srun or launch, or unset RANK and WORLD_SIZE to run it alone");
  EXPECT_TRUE(CheckTorchrun(DetectLauncher(Environment<11>)).ok()) << "a process alone";
  EXPECT_TRUE(CheckTorchrun(DetectLauncher(Environment<1>)).ok()) << "mpirun";
}

TEST(CheckPmi, IsWhatSrunMustGive) {
  const auto check = [](std::map<std::string, std::string> changes) {
    const Lookup lookup = [&changes](const char* name) {
      const auto found = changes.find(name);
      return found == changes.end() ? Environment<3>(name) : found->second.c_str();
    };
    return CheckPmi(DetectLauncher(lookup), lookup).ok();
  };
  EXPECT_FALSE(check({}));
  EXPECT_TRUE(check({{"PMIX_RANK", "5"}}));
  EXPECT_TRUE(check({{"PMI_FD", "12"}}));
  EXPECT_TRUE(CheckPmi(DetectLauncher(Environment<1>), Environment<1>).ok()) << "mpirun in a Slurm job";
  EXPECT_TRUE(CheckPmi(DetectLauncher(Environment<4>), Environment<4>).ok()) << "a shell";
}

}  // namespace
}  // namespace plait::comm
