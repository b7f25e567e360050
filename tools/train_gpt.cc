// Trains a GPT on a text, data-parallel: tools/gpt_training/README.md.
#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/keep_freed_memory.h"
#include "base/status_macros.h"
#include "comm/launch/launcher.h"
#include "comm/launch/relaunch.h"
#include "comm/session_main.h"
#include "tools/gpt_training/config.h"
#include "tools/gpt_training/flags.h"
#include "tools/gpt_training/run.h"

namespace plait::gpt_training {
namespace {

constexpr int kUsageError = 2;
constexpr int kStoppedBySigterm = 128 + 15;

int Fail(const absl::Status& status, int rank, int code) {
  if (rank == 0) std::fprintf(stderr, "train_gpt: %s\n", std::string(status.message()).c_str());
  return code;
}

// --nproc, else as many as a complete --mesh has, else one per core.
absl::StatusOr<int> RanksToStart(const Config& config) {
  if (config.nproc > 0) return config.nproc;
  if (config.prepare_only) return 1;
  if (!config.mesh.empty() && config.mesh.find("-1") == std::string::npos) {
    PLAIT_ASSIGN_OR_RETURN(const MeshShape mesh, ParseMesh(config.mesh, 0));
    return mesh.ranks();
  }
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostDefaultRanks);
}

absl::StatusOr<Config> CheckedConfig(const comm::Launcher& launcher, int* ranks) {
  PLAIT_ASSIGN_OR_RETURN(const Config config, ConfigFromFlags());
  PLAIT_ASSIGN_OR_RETURN(*ranks, RanksToStart(config));
  if (launcher.starts_mpi()) *ranks = launcher.size;
  if (config.nproc > 0 && config.nproc != *ranks) {
    return absl::InvalidArgumentError(absl::StrCat("--nproc=", config.nproc, ": a launcher has started ",
                                                   *ranks, " ranks; leave --nproc out"));
  }
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
