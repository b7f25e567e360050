// Trains a GRU network on human-activity sequences, layer-parallel: tools/gru_training/README.md.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/seed.h"
#include "base/status_macros.h"
#include "base/timer_report.h"
#include "comm/gathered_text.h"
#include "tools/gru_training/batches.h"
#include "tools/gru_training/gru_task.h"
#include "tools/gru_training/report.h"
#include "tools/gru_training/settings.h"
#include "tools/training/program.h"
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
                                    MeanOf(task.outcome().epoch_seconds), mark,
                                    MeanOf(task.outcome().test_seconds), mark));
}

absl::StatusOr<Outcome> TrainOne(const GruSettings& settings, Run& run, const data::SequenceSet& set) {
  run.console.Print(absl::StrCat("USING SEED: ", settings.seed, "\n"));
  run.console.Print(DataLine(set) + "\n");
  run.console.Print(NetworkBlock(settings, run.mesh.axis("lp").size()));
  GruTask task(settings, run, set);
  training::Trainer trainer(run, task);
  task.set_trainer(trainer);
  PLAIT_RETURN_IF_ERROR(trainer.Prepare());
  PLAIT_RETURN_IF_ERROR(trainer.Train());
  PLAIT_RETURN_IF_ERROR(trainer.Conclude());
  if (!run.stopped) PrintTables(task, set, run);
  return task.outcome();
}

absl::Status TrainEnsemble(GruSettings& settings, Run& run, const data::SequenceSet& set) {
  const std::string rule(52, '=');
  run.console.Print("ENSEMBLE RUNS BEGUN\n" + rule);
  const std::uint64_t seed = settings.seed;
  double parallel = 0, serial = 0, seconds = 0;
  for (int member = 0; member < settings.ensemble_size; ++member) {
    run.console.Print(absl::StrCat("  ENSEMBLE ", member + 1, "\n  ", std::string(37, '-')));
    settings.seed = base::DeriveSeed(seed, "ensemble", member);
    PLAIT_ASSIGN_OR_RETURN(const Outcome outcome, TrainOne(settings, run, set));
    const double epoch = MeanOf(outcome.epoch_seconds);
    run.console.Print(
        EnsembleLines("  ", epoch, outcome.parallel_accuracy, outcome.serial_accuracy, set.synthetic));
    parallel += outcome.parallel_accuracy / settings.ensemble_size;
    serial += outcome.serial_accuracy / settings.ensemble_size;
    seconds += epoch / settings.ensemble_size;
  }
  run.console.Print(rule + "\nENSEMBLE RUNS Completed, means:");
  run.console.Print(EnsembleLines("", seconds, parallel, serial, set.synthetic));
  return absl::OkStatus();
}

absl::Status Train(GruSettings& settings, Run& run) {
  run.console.Print(SettingsBlock(run.world.size(), run.settings_line));
  PLAIT_ASSIGN_OR_RETURN(
      const data::SequenceSet set,
      OpenData(settings, run.world, [&](const std::string& line) { run.console.Print(line); }));
  if (settings.ensemble_size > 1) return TrainEnsemble(settings, run, set);
  return TrainOne(settings, run, set).status();
}

}  // namespace
}  // namespace plait::gru_training

int main(int argc, char** argv) {
  using namespace plait;
  gru_training::GruSettings settings;
  return training::RunProgram(
      argc, argv,
      {.name = "train_gru",
       .summary =
           "Trains a GRU network on human-activity sequences, the steps of a sequence spread over ranks "
           "and solved in parallel by multigrid in time; batches may be split over ranks as well.",
       .examples =
           {"train_gru", "train_gru --nproc=4 --lp-levels 3 --lp-cfactor 4 --epochs=4",
            "train_gru --mesh=dp_replicate=2,lp=2",
            "mpirun -n 4 train_gru --lp-iters=1 --lp-fwd-iters 2 --checkpoint-dir=run --history=run.h5"},
       .settings = settings,
       .run = [&](training::Run& run) { return gru_training::Train(settings, run); }});
}
