// Training of a GPT on a text: batches, estimates of the losses, samples, and what is printed.
#ifndef PLAIT_TOOLS_GPT_TRAINING_GPT_TASK_H_
#define PLAIT_TOOLS_GPT_TRAINING_GPT_TASK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/gpt/gpt.h"
#include "models/gpt/safetensors.h"
#include "parallel/optim/lr_schedule.h"
#include "tools/gpt_training/block_batches.h"
#include "tools/gpt_training/corpus.h"
#include "tools/gpt_training/saved_model.h"
#include "tools/gpt_training/settings.h"
#include "tools/gpt_training/step_line.h"
#include "tools/training/trainer.h"

namespace plait::gpt_training {

class GptTask final : public training::TrainingTask {
 public:
  // The model is that of the checkpoint to resume from, of the files of --init-from, or of the settings.
  // InvalidArgument where a sequence does not fit a part of the text, or the text has another vocabulary than
  // the files. All arguments outlive the task.
  static absl::StatusOr<std::unique_ptr<GptTask>> Make(const GptSettings& settings, const training::Run& run,
                                                       const Corpus& corpus,
                                                       const std::optional<gpt::HuggingFaceGpt2>& files);
  // Of a rank, for mfu; 0: not known.
  void set_peak_flops(double flops) { peak_flops_ = flops; }
  const gpt::Gpt& gpt() const { return model_; }

  training::TrainedModel model() override;
  training::NamedValues facts() const override;
  bool done() const override { return step_ >= settings_.max_iters; }
  training::TaskProgress progress() const override { return {"train", step_, settings_.max_iters}; }
  std::string Position() const override;
  double LearningRate() const override { return schedule_.At(step_); }
  training::MicroBatch Next(int k) override;
  absl::Status BeforeFirstStep() override;
  bool EvaluationIsDue() const override { return settings_.EvaluatesAt(step_ + 1); }
  absl::Status EndStep(const training::StepReport& report, bool evaluates) override;
  void Save(parallel::CheckpointState& state) const override;
  absl::Status Restore(const parallel::Checkpoint& checkpoint) override;
  std::vector<training::Recorded> metrics() const override;
  training::HistoryPlots plots() const override;

 private:
  struct Batches {
    BlockBatches train, estimated_train, estimated_validation;
  };
  GptTask(const GptSettings& settings, const training::Run& run, const Corpus& corpus,
          const std::optional<gpt::HuggingFaceGpt2>& files, const gpt::GptOptions& options, Batches batches);
  absl::Status Evaluate(Losses* losses);
  double MeanLoss(const std::string& label, BlockBatches& batches);
  absl::StatusOr<std::string> Sample();
  absl::Status Record(const StepNumbers& numbers, double evaluation_seconds);

  const GptSettings& settings_;
  const training::Run& run_;
  const Corpus& corpus_;
  const std::optional<gpt::HuggingFaceGpt2>& files_;
  gpt::Gpt model_;
  Batches batches_;
  parallel::LrSchedule schedule_;
  double peak_flops_ = 0;
  std::vector<std::int64_t> prompt_tokens_;
  std::string prompt_;     // --sample-prompt without characters outside the vocabulary, at least one token
  std::int64_t step_ = 0;  // steps done
};

}  // namespace plait::gpt_training

#endif  // PLAIT_TOOLS_GPT_TRAINING_GPT_TASK_H_
