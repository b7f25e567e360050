// Trains a convolutional network on images, sharded over ranks: tools/cnn_training/README.md.
#include <cstdio>
#include <string>
#include <thread>

#include "base/keep_freed_memory.h"
#include "base/status_macros.h"
#include "comm/launch/launcher.h"
#include "comm/launch/relaunch.h"
#include "comm/session_main.h"
#include "tools/cnn_training/config.h"
#include "tools/cnn_training/flags.h"
#include "tools/cnn_training/run.h"
#include "tools/training_program/mesh_flag.h"

namespace plait::cnn_training {
namespace {

constexpr int kUsageError = 2;
constexpr int kStoppedBySigterm = 128 + 15;

int Fail(const absl::Status& status, int rank, int code) {
  if (rank == 0) std::fprintf(stderr, "train_cnn: %s\n", std::string(status.message()).c_str());
  return code;
}

// The number of ranks that the run will have, with the settings checked for it.
absl::StatusOr<int> CheckedRanks(const Config& config, const comm::Launcher& launcher) {
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  PLAIT_ASSIGN_OR_RETURN(const int ranks,
                         training_program::RanksOfRun(config.nproc, config.mesh, launcher, cores));
  PLAIT_RETURN_IF_ERROR(Check(config, ranks));
  return ranks;
}

int Main(int argc, char** argv) {
  const comm::Launcher launcher = comm::DetectLauncher();
  const int rank = launcher.starts_mpi() ? launcher.rank : 0;
  base::ParseFlagsOrExit(argc, argv, Usage(), rank);
  const Config config = ConfigFromFlags();
  const absl::StatusOr<int> ranks = CheckedRanks(config, launcher);
  if (!ranks.ok()) return Fail(ranks.status(), rank, kUsageError);
  if (!launcher.starts_mpi() && *ranks > 1) return Fail(comm::RelaunchOnRanks(*ranks, argv), 0, 1);
  base::KeepFreedMemory();
  bool stopped = false;
  const comm::SessionOptions options = {.step_timeout_seconds = config.timeout_seconds,
                                        .stop_on_sigterm = !config.checkpoint_dir.empty()};
  const int code = comm::RunMain(argc, argv, options, [&](comm::Session& session) {
    return Run(config, FlagSettings(), session, &stopped);
  });
  return code == 0 && stopped ? kStoppedBySigterm : code;
}

}  // namespace
}  // namespace plait::cnn_training

int main(int argc, char** argv) { return plait::cnn_training::Main(argc, argv); }
