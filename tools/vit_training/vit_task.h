// Training of a vision transformer on images: steps, tests, and what is printed.
//
//   iter=3 loss=6.974534 dt=0.917288 dtf=0.303060 dtb=0.605716 sps=...
//   iter=3 test_loss=6.881203 test_acc=0.210000
#ifndef PLAIT_TOOLS_VIT_TRAINING_VIT_TASK_H_
#define PLAIT_TOOLS_VIT_TRAINING_VIT_TASK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/images/image_source.h"
#include "models/vit/preprocessor.h"
#include "models/vit/safetensors.h"
#include "models/vit/vit.h"
#include "parallel/optim/lr_schedule.h"
#include "tools/image_training/image_batches.h"
#include "tools/training/epoch_sampler.h"
#include "tools/training/trainer.h"
#include "tools/vit_training/settings.h"

namespace plait::vit_training {

// Makes models for dry runs. `settings` must outlive the result.
training::MakeDryRunModel DryRunModelOf(const VitSettings& settings, const vit::VitOptions& options);

class VitTask final : public training::TrainingTask {
 public:
  // All arguments outlive the task. `files`: of --init-from, with these options.
  VitTask(const VitSettings& settings, const training::Run& run, const data::ImageSets& images,
          const vit::VitOptions& options, const std::optional<vit::HuggingFaceVit>& files,
          const vit::Preprocessor& preprocessor, const std::vector<std::string>& class_names);

  const vit::Vit& vit() const { return model_; }

  training::TrainedModel model() override;
  training::MakeDryRunModel dry_run_model() override;
  training::NamedValues facts() const override;
  training::NamedValues shared_facts() const override;
  std::string data() const override { return images_.description(); }
  bool done() const override;
  training::TaskProgress progress() const override;
  std::string Position() const override;
  double LearningRate() const override { return schedule_.At(step_); }
  training::MicroBatch Next(int k) override;
  absl::Status CheckData() override;
  bool EvaluationIsDue() const override;
  absl::Status EndStep(const training::StepReport& report, bool evaluates) override;
  absl::Status EvaluateOnly() override { return Test().status(); }
  void Save(parallel::CheckpointState& state) const override;
  absl::Status Restore(const parallel::Checkpoint& checkpoint) override;
  std::vector<training::Recorded> metrics() const override;
  training::HistoryPlots plots() const override;

 private:
  // Evaluates on the test images and prints the result. Collective.
  absl::StatusOr<image_training::TestResult> Test();

  const VitSettings& settings_;
  const training::Run& run_;
  const data::ImageSets& images_;
  const std::optional<vit::HuggingFaceVit>& files_;
  const vit::Preprocessor& preprocessor_;
  const std::vector<std::string>& class_names_;  // of the model
  vit::Vit model_;
  image_training::ImageBatches train_, test_;
  parallel::LrSchedule schedule_;
  training::EpochSampler sampler_;
  std::int64_t step_ = 0;  // steps done
};

}  // namespace plait::vit_training

#endif  // PLAIT_TOOLS_VIT_TRAINING_VIT_TASK_H_
