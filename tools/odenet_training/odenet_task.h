// Training and validation of one network: all of a run, or one level of a nested iteration.
//
//   level=2 layers=8 epoch=20 work_units=395.00 dt=0.581 train_loss=0.742000 val_loss=0.713000 val_acc=71.50
//
// A work unit is a gradient step of the finest network: a step of a network with half the layers counts one half. dt:
// seconds of training since the last validation; val_acc: percent.
#ifndef PLAIT_TOOLS_ODENET_TRAINING_ODENET_TASK_H_
#define PLAIT_TOOLS_ODENET_TRAINING_ODENET_TASK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/odenet/odenet.h"
#include "parallel/optim/lr_schedule.h"
#include "tools/image_training/image_batches.h"
#include "tools/odenet_training/problem.h"
#include "tools/odenet_training/settings.h"
#include "tools/training/epoch_sampler.h"
#include "tools/training/trainer.h"

namespace plait::odenet_training {

// Name of the checkpoint's integer with its level.
inline constexpr char kLevel[] = "level";

using Weights = std::map<std::string, at::Tensor>;  // by name in the state dict, in the host's memory

// A validation, and the training since the previous one.
struct Point {
  int level = 0;  // 0: the finest
  std::int64_t layers = 0, epoch = 0;
  std::int64_t step = 0;  // done, of all levels
  double work_units = 0, seconds = 0, train_loss = 0, val_loss = 0, val_acc = 0, lr = 0;
};

struct Level {
  int number = 0;
  std::int64_t layers = 0;
  int epochs = 0;
  std::int64_t first_step = 0;      // steps of coarser levels
  Weights initial = {};             // empty: drawn
  std::vector<Point> earlier = {};  // of coarser levels
  bool prints = true;
};

// What the optimizer and the trainer add for --tikhonov, alpha / 2 sum dt |theta|^2, and --tikhonov-time,
// beta / 2 sum |theta_{n+1} - theta_n|^2 / dt (SIMODS 2020, equation 6); dt: the time that a layer's, or a control
// point's, weights stand for.
struct Regularisation {
  double weight_decay = 0;   // alpha dt, of Adam, which adds it to gradients
  double time_tikhonov = 0;  // beta / dt; 0 with control points, for which the model has it in its loss
};
Regularisation RegularisationOf(const OdeNetSettings& settings, const odenet::OdeNetOptions& options);

class OdeNetTask final : public training::TrainingTask {
 public:
  // All arguments outlive the task.
  OdeNetTask(const OdeNetSettings& settings, const training::Run& run, const Problem& problem,
             const Level& level);

  const odenet::OdeNet& net() const { return model_; }
  // Validations of coarser levels and of this one.
  const std::vector<Point>& story() const { return story_; }
  std::int64_t step() const { return step_; }  // counted over all levels

  training::TrainedModel model() override;
  training::MakeDryRunModel dry_run_model() override;
  training::NamedValues facts() const override;
  training::NamedValues shared_facts() const override;
  std::string data() const override { return problem_.description; }
  std::int64_t first_step() const override { return level_.first_step; }
  bool done() const override { return sampler_.epoch() >= level_.epochs; }
  training::TaskProgress progress() const override;
  std::string Position() const override;
  double LearningRate() const override { return schedule_.At(sampler_.epoch()); }
  training::MicroBatch Next(int k) override;
  absl::Status BeforeFirstStep() override;
  bool EvaluationIsDue() const override;
  absl::Status EndStep(const training::StepReport& report, bool evaluates) override;
  absl::Status EvaluateOnly() override;
  void Save(parallel::CheckpointState& state) const override;
  absl::Status Restore(const parallel::Checkpoint& checkpoint) override;
  std::vector<training::Recorded> metrics() const override;
  int gather_every() const override { return 1; }
  training::HistoryPlots plots() const override;
  bool always_writes_outputs() const override { return level_.number == 0 && level_.prints; }

 private:
  training::TrainedModel TrainedOf(odenet::OdeNet* model) const;
  absl::StatusOr<image_training::TestResult> Validate();
  absl::Status Evaluate();
  absl::Status Record(const Point& point);

  const OdeNetSettings& settings_;
  const training::Run& run_;
  const Problem& problem_;
  const Level& level_;
  odenet::OdeNet model_;
  parallel::LrSchedule schedule_;
  training::EpochSampler sampler_;
  std::vector<Point> story_;
  std::int64_t step_;
  double work_units_ = 0;
  // Since the last validation.
  double loss_sum_ = 0, seconds_ = 0;
  std::int64_t samples_ = 0;
};

}  // namespace plait::odenet_training

#endif  // PLAIT_TOOLS_ODENET_TRAINING_ODENET_TASK_H_
