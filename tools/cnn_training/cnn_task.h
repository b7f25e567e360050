// Training and testing of the network, epoch by epoch.
//
//   epoch=1 dt=13.378889 train_loss=0.642072 test_loss=0.153527 test_acc=95.260000
#ifndef PLAIT_TOOLS_CNN_TRAINING_CNN_TASK_H_
#define PLAIT_TOOLS_CNN_TRAINING_CNN_TASK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/images/image_source.h"
#include "models/cnn/cnn.h"
#include "parallel/optim/lr_schedule.h"
#include "tools/cnn_training/settings.h"
#include "tools/image_training/image_batches.h"
#include "tools/training/epoch_sampler.h"
#include "tools/training/trainer.h"

namespace plait::cnn_training {

// Collective over `world`. Opens the IDX files of --data, or by default Fashion-MNIST of Debian's package, else
// synthetic images. Errors of AgreeOnImages; INVALID_ARGUMENT for images of less than 6 x 6.
absl::StatusOr<data::ImageSets> OpenImages(const CnnSettings& settings, const comm::Communicator& world);

class CnnTask final : public training::TrainingTask {
 public:
  // All arguments outlive the task.
  CnnTask(const CnnSettings& settings, const training::Run& run, const data::ImageSets& images);

  std::string Description() const { return model_.Description(); }
  int epochs_done() const { return epochs_done_; }  // in this run
  double seconds() const { return run_seconds_; }   // of them, tests included

  training::TrainedModel model() override;
  training::NamedValues facts() const override;
  training::NamedValues shared_facts() const override;
  std::string data() const override { return images_.description(); }
  bool done() const override { return sampler_.epoch() >= settings_.epochs; }
  training::TaskProgress progress() const override;
  std::string Position() const override;
  double LearningRate() const override { return schedule_.At(sampler_.epoch()); }
  training::MicroBatch Next(int k) override;
  bool EvaluationIsDue() const override { return sampler_.at_epoch_end(); }
  absl::Status EndStep(const training::StepReport& report, bool evaluates) override;
  absl::Status EvaluateOnly() override;
  void Save(parallel::CheckpointState& state) const override;
  absl::Status Restore(const parallel::Checkpoint& checkpoint) override;
  std::vector<training::Recorded> metrics() const override;
  int gather_every() const override { return 1; }
  training::HistoryPlots plots() const override;

 private:
  absl::Status EndEpoch();

  const CnnSettings& settings_;
  const training::Run& run_;
  const data::ImageSets& images_;
  image_training::ImageBatches train_, test_;
  cnn::Cnn model_;
  parallel::LrSchedule schedule_;
  training::EpochSampler sampler_;
  std::int64_t step_ = 0;
  // Of the epoch so far: the sum of its samples' losses, each at its step, and seconds of training.
  double loss_sum_ = 0, seconds_ = 0;
  int epochs_done_ = 0;
  double run_seconds_ = 0;
};

}  // namespace plait::cnn_training

#endif  // PLAIT_TOOLS_CNN_TRAINING_CNN_TASK_H_
