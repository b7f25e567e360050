// Trains a GRU network on human-activity sequences, layer-parallel: tools/gru_training/README.md.
#include <string>

#include "base/status_macros.h"
#include "tools/gru_training/batches.h"
#include "tools/gru_training/settings.h"
#include "tools/gru_training/train.h"
#include "tools/training/program.h"

namespace plait::gru_training {
namespace {

absl::Status Train(GruSettings& settings, training::Run& run) {
  PrintSettings(run);
  PLAIT_ASSIGN_OR_RETURN(
      const data::SequenceSet set,
      OpenData(settings, run.world, [&](const std::string& line) { run.console.Print(line); }));
  return TrainOnSequences(settings, run, {.set = set, .name = "UCI HAR Dataset"});
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
