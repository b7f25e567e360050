// Trains a convolutional network on images, sharded over ranks: tools/cnn_training/README.md.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "tools/cnn_training/cnn_task.h"
#include "tools/cnn_training/settings.h"
#include "tools/image_training/image_batches.h"
#include "tools/training/model_file.h"
#include "tools/training/program.h"
#include "tools/training/trainer.h"

namespace plait::cnn_training {
namespace {

std::vector<std::pair<std::string, std::string>> ConfigBlock(const CnnSettings& s, const training::Run& run) {
  const std::int64_t all = s.GlobalBatch(run.data.size());
  return {{"batch_size", absl::StrCat(s.SamplesPerRank(run.data.size()), " a rank, ", all, " in all")},
          {"test_batch_size", absl::StrCat(s.test_batch_size)},
          {"epochs", absl::StrCat(s.epochs)},
          {"lr", absl::StrCat(s.lr)},
          {"gamma", absl::StrCat(s.gamma)},
          {"weight_decay", absl::StrCat(s.weight_decay)},
          {"dropout", absl::StrCat(s.dropout1, ", ", s.dropout2)},
          {"strategy", s.strategy},
          {"dtype", s.dtype},
          {"activation_checkpointing", s.activation_checkpointing},
          {"device", run.environment.device.kind},
          {"world_size", absl::StrCat(run.world.size())},
          {"seed", absl::StrCat(s.seed)}};
}

absl::Status Train(const CnnSettings& settings, training::Run& run) {
  PLAIT_RETURN_IF_ERROR(training::ProbeModelFolder(settings.save_model, run));
  PLAIT_ASSIGN_OR_RETURN(const data::ImageSets images, OpenImages(settings, run.world));
  run.log.Info(image_training::DataLine(images));
  CnnTask task(settings, run, images);
  training::Trainer trainer(run, task);
  PLAIT_RETURN_IF_ERROR(trainer.Prepare());
  run.log.Info(absl::StrCat("model=", task.Description()));
  PLAIT_RETURN_IF_ERROR(trainer.Train());
  if (!settings.eval_only) {
    run.log.Info(absl::StrFormat("%d %s took %.1fs", task.epochs_done(),
                                 task.epochs_done() == 1 ? "epoch" : "epochs", task.seconds()));
  }
  PLAIT_RETURN_IF_ERROR(training::SaveModel(trainer.model(), settings.save_model, run));
  return trainer.Conclude();
}

}  // namespace
}  // namespace plait::cnn_training

int main(int argc, char** argv) {
  using namespace plait;
  cnn_training::CnnSettings settings;
  return training::RunProgram(
      argc, argv,
      {.name = "train_cnn",
       .summary = "Trains a convolutional network on MNIST or Fashion-MNIST, its parameters, gradients and "
                  "optimizer state replicated or sharded over ranks.",
       .examples = {"train_cnn", "train_cnn --nproc=2 --strategy=fsdp --epochs=20 --data=mnist",
                    "mpirun -n 4 train_cnn --mesh=dp_replicate=2,dp_shard=2 --checkpoint-dir=run"},
       .settings = settings,
       .run = [&](training::Run& run) { return cnn_training::Train(settings, run); },
       .config_block = [&](const training::Run& run) { return cnn_training::ConfigBlock(settings, run); }});
}
