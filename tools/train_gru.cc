// Trains a GRU network on human-activity sequences, layer-parallel: tools/gru_training/README.md.
#include <ATen/Parallel.h>

#include <cstdio>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/seed.h"
#include "base/status_macros.h"
#include "comm/launch/launcher.h"
#include "comm/launch/relaunch.h"
#include "comm/session_main.h"
#include "tools/gru_training/batches.h"
#include "tools/gru_training/config.h"
#include "tools/gru_training/console.h"
#include "tools/gru_training/flags.h"
#include "tools/gru_training/report.h"
#include "tools/gru_training/training.h"
#include "tools/training_program/mesh_flag.h"

namespace plait::gru_training {
namespace {

constexpr int kUsageError = 2;
constexpr int kStoppedBySigterm = 128 + 15;

absl::StatusOr<Config> CheckedConfig(const comm::Launcher& launcher, int* ranks) {
  PLAIT_ASSIGN_OR_RETURN(const Config config, ConfigFromFlags());
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  PLAIT_ASSIGN_OR_RETURN(*ranks, training_program::RanksOfRun(config.nproc, /*mesh=*/"", launcher, cores));
  PLAIT_RETURN_IF_ERROR(Check(config, *ranks));
  return config;
}

absl::StatusOr<Outcome> TrainOne(const Config& config, comm::Session& session, const data::SequenceSet& set,
                                 Console& console) {
  console.Print(absl::StrCat("USING SEED: ", config.seed, "\n"));
  console.Print(DataLine(set) + "\n");
  console.Print(NetworkBlock(config, session.world().size()));
  Training training(config, FlagSettings(), session, set, console);
  PLAIT_RETURN_IF_ERROR(training.Run());
  return training.outcome();
}

absl::Status TrainEnsemble(const Config& config, comm::Session& session, const data::SequenceSet& set,
                           Console& console) {
  const std::string rule(52, '=');
  console.Print("ENSEMBLE RUNS BEGUN\n" + rule);
  double parallel = 0, serial = 0, seconds = 0;
  for (int member = 0; member < config.ensemble_size; ++member) {
    console.Print(absl::StrCat("  ENSEMBLE ", member + 1, "\n  ", std::string(37, '-')));
    Config own = config;
    own.seed = base::DeriveSeed(config.seed, "ensemble", member);
    PLAIT_ASSIGN_OR_RETURN(const Outcome outcome, TrainOne(own, session, set, console));
    const double epoch = MeanOf(outcome.epoch_seconds);
    console.Print(
        EnsembleLines("  ", epoch, outcome.parallel_accuracy, outcome.serial_accuracy, set.synthetic));
    parallel += outcome.parallel_accuracy / config.ensemble_size;
    serial += outcome.serial_accuracy / config.ensemble_size;
    seconds += epoch / config.ensemble_size;
  }
  console.Print(rule + "\nENSEMBLE RUNS Completed, means:");
  console.Print(EnsembleLines("", seconds, parallel, serial, set.synthetic));
  return absl::OkStatus();
}

absl::Status RunProgram(const Config& config, comm::Session& session, bool* stopped) {
  const comm::Communicator& world = session.world();
  at::set_num_threads(1);
  Console console(world.rank() == 0);
  console.Print(SettingsBlock(world.size(), FlagSettings()));
  PLAIT_ASSIGN_OR_RETURN(const data::SequenceSet set,
                         OpenData(config, world, [&](const std::string& line) { console.Print(line); }));
  session.EnterSteps();
  if (config.ensemble_size > 1) return TrainEnsemble(config, session, set, console);
  PLAIT_ASSIGN_OR_RETURN(const Outcome outcome, TrainOne(config, session, set, console));
  *stopped = outcome.stopped;
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  const comm::Launcher launcher = comm::DetectLauncher();
  const int rank = launcher.starts_mpi() ? launcher.rank : 0;
  base::ParseFlagsOrExit(argc, argv, Usage(), rank);
  int ranks = 1;
  const absl::StatusOr<Config> config = CheckedConfig(launcher, &ranks);
  if (!config.ok()) {
    if (rank == 0) std::fprintf(stderr, "train_gru: %s\n", std::string(config.status().message()).c_str());
    return kUsageError;
  }
  if (!launcher.starts_mpi() && ranks > 1) {
    const absl::Status failed = comm::RelaunchOnRanks(ranks, argv);
    std::fprintf(stderr, "train_gru: %s\n", std::string(failed.message()).c_str());
    return 1;
  }
  bool stopped = false;
  const comm::SessionOptions options = {.step_timeout_seconds = config->timeout_seconds,
                                        .stop_on_sigterm = !config->checkpoint_dir.empty()};
  const int code = comm::RunMain(
      argc, argv, options, [&](comm::Session& session) { return RunProgram(*config, session, &stopped); });
  return code == 0 && stopped ? kStoppedBySigterm : code;
}

}  // namespace
}  // namespace plait::gru_training

int main(int argc, char** argv) { return plait::gru_training::Main(argc, argv); }
