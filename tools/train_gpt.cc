// Trains a GPT on a text, data-parallel: tools/gpt_training/README.md.
#include <cstdio>
#include <string>
#include <thread>

#include "base/keep_freed_memory.h"
#include "base/status_macros.h"
#include "comm/launch/launcher.h"
#include "comm/launch/relaunch.h"
#include "comm/session_main.h"
#include "tools/gpt_training/config.h"
#include "tools/gpt_training/flags.h"
#include "tools/gpt_training/run.h"
#include "tools/training_program/mesh_flag.h"

namespace plait::gpt_training {
namespace {

constexpr int kUsageError = 2;
constexpr int kStoppedBySigterm = 128 + 15;

int Fail(const absl::Status& status, int rank, int code) {
  if (rank == 0) std::fprintf(stderr, "train_gpt: %s\n", std::string(status.message()).c_str());
  return code;
}

// A text is prepared by one rank.
absl::StatusOr<int> RanksOf(const Config& config, const comm::Launcher& launcher) {
  if (config.prepare_only && config.nproc == 0 && !launcher.starts_mpi()) return 1;
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  return training_program::RanksOfRun(config.nproc, config.mesh, launcher, cores);
}

absl::StatusOr<Config> CheckedConfig(const comm::Launcher& launcher, int* ranks) {
  PLAIT_ASSIGN_OR_RETURN(const Config config, ConfigFromFlags());
  PLAIT_ASSIGN_OR_RETURN(*ranks, RanksOf(config, launcher));
  PLAIT_RETURN_IF_ERROR(Check(config, *ranks));
  return config;
}

int Main(int argc, char** argv) {
  const comm::Launcher launcher = comm::DetectLauncher();
  const int rank = launcher.starts_mpi() ? launcher.rank : 0;
  const absl::Status preset = TakePreset(argc, argv);
  if (!preset.ok()) return Fail(preset, rank, kUsageError);
  base::ParseFlagsOrExit(argc, argv, Usage(), rank);
  int ranks = 1;
  const absl::StatusOr<Config> config = CheckedConfig(launcher, &ranks);
  if (!config.ok()) return Fail(config.status(), rank, kUsageError);
  if (!launcher.starts_mpi() && ranks > 1) return Fail(comm::RelaunchOnRanks(ranks, argv), 0, 1);
  base::KeepFreedMemory();
  bool stopped = false;
  const comm::SessionOptions options = {.step_timeout_seconds = config->timeout_seconds,
                                        .stop_on_sigterm = !config->checkpoint_dir.empty()};
  const int code = comm::RunMain(argc, argv, options, [&](comm::Session& session) {
    return Run(*config, FlagSettings(), session, &stopped);
  });
  return code == 0 && stopped ? kStoppedBySigterm : code;
}

}  // namespace
}  // namespace plait::gpt_training

int main(int argc, char** argv) { return plait::gpt_training::Main(argc, argv); }
