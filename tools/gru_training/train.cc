#include "tools/gru_training/train.h"

#include <c10/core/DeviceType.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/seed.h"
#include "base/status_macros.h"
#include "base/timer_report.h"
#include "comm/gathered_text.h"
#include "tools/gru_training/report.h"
#include "tools/training/trainer.h"

namespace plait::gru_training {
namespace {

using training::Run;

void PrintTables(GruTask& task, const data::SequenceSet& set, const Run& run) {
  std::string tables;
  for (const std::string& table :
       comm::GatherText(run.world, base::TimerTable(task.timers(), run.world.rank()))) {
    tables += table;
  }
  const char* mark = set.synthetic ? "\t(synthetic data)" : "";
  run.console.Print(tables);
  run.console.Print(absl::StrFormat("TIME PER EPOCH: %.2e%s\nTIME PER TEST:  %.2e%s",
                                    task.outcome().epochs.mean_seconds(), mark,
                                    task.outcome().tests.mean_seconds(), mark));
}

absl::StatusOr<Outcome> TrainOne(const GruSettings& settings, Run& run, const Sequences& sequences) {
  run.console.Print(absl::StrCat("USING SEED: ", settings.seed, "\n"));
  run.console.Print(DataLine(sequences.name, sequences.set) + "\n");
  run.console.Print(NetworkBlock(settings, run.mesh.axis("lp").size()));
  GruTask task(settings, run, sequences);
  training::Trainer trainer(run, task);
  PLAIT_RETURN_IF_ERROR(trainer.Prepare());
  PLAIT_RETURN_IF_ERROR(trainer.Train());
  PLAIT_RETURN_IF_ERROR(trainer.Conclude());
  if (!run.stopped && !settings.eval_only) PrintTables(task, sequences.set, run);
  return task.outcome();
}

absl::Status TrainEnsemble(GruSettings& settings, Run& run, const Sequences& sequences) {
  const bool synthetic = sequences.set.synthetic;
  const std::string rule(52, '=');
  run.console.Print("ENSEMBLE RUNS BEGUN\n" + rule);
  const std::uint64_t seed = settings.seed;
  double parallel = 0, serial = 0, seconds = 0;
  for (int member = 0; member < settings.ensemble_size; ++member) {
    run.console.Print(absl::StrCat("  ENSEMBLE ", member + 1, "\n  ", std::string(37, '-')));
    settings.seed = base::DeriveSeed(seed, "ensemble", member);
    PLAIT_ASSIGN_OR_RETURN(const Outcome outcome, TrainOne(settings, run, sequences));
    const double epoch = outcome.epochs.mean_seconds();
    run.console.Print(
        EnsembleLines("  ", epoch, outcome.parallel_accuracy, outcome.serial_accuracy, synthetic));
    parallel += outcome.parallel_accuracy / settings.ensemble_size;
    serial += outcome.serial_accuracy / settings.ensemble_size;
    seconds += epoch / settings.ensemble_size;
  }
  run.console.Print(rule + "\nENSEMBLE RUNS Completed, means:");
  run.console.Print(EnsembleLines("", seconds, parallel, serial, synthetic));
  return absl::OkStatus();
}

}  // namespace

void PrintSettings(const Run& run) {
  run.console.Print(SettingsBlock(run.world.size(), run.settings_line()));
  run.console.Print(
      absl::StrCat("DEVICE=", c10::DeviceTypeName(run.device.type(), /*lower_case=*/true), "\n"));
}

absl::Status TrainOnSequences(GruSettings& settings, Run& run, const Sequences& sequences) {
  if (settings.ensemble_size > 1) return TrainEnsemble(settings, run, sequences);
  return TrainOne(settings, run, sequences).status();
}

}  // namespace plait::gru_training
