// Training of a language model on a text: batches, estimates of the losses, samples.
//
//   PLAIT_ASSIGN_OR_RETURN(const auto task, TextTask::Make(settings, run, corpus, options, files, output));
//   training::Trainer trainer(run, *task);
#ifndef PLAIT_TOOLS_TEXT_TRAINING_TEXT_TASK_H_
#define PLAIT_TOOLS_TEXT_TRAINING_TEXT_TASK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/sampling/sampler.h"
#include "parallel/optim/lr_schedule.h"
#include "tools/text_training/block_batches.h"
#include "tools/text_training/corpus.h"
#include "tools/text_training/language_model.h"
#include "tools/text_training/saved_model.h"
#include "tools/text_training/settings.h"
#include "tools/training/trainer.h"

namespace plait::text_training {

struct Losses {
  double train = 0;
  double validation = 0;
};

struct StepNumbers {
  training::StepReport report;
  std::int64_t samples = 0;  // over all ranks and micro-batches; so are tokens
  std::int64_t tokens = 0;
  int ranks = 1;
  double mfu_percent = 0;  // NaN: peak unknown
  std::optional<Losses> losses = {};
  double evaluation_seconds = 0;

  double samples_per_second() const { return static_cast<double>(samples) / report.slowest_seconds; }
  double tokens_per_second() const { return static_cast<double>(tokens) / report.slowest_seconds; }
};

// What a program prints and records of a step.
struct StepOutput {
  std::vector<training::Recorded> metrics;
  training::HistoryPlots plots;
  std::function<std::string(const StepNumbers&)> line;
  // Values of the metrics; NaN for those that a step lacks. Also called for step 0, with the estimates before training.
  std::function<std::vector<data::Scalar>(const StepNumbers&)> scalars;
};

// For a dry run with these settings, which must outlive the result.
training::MakeDryRunModel DryRunModelOf(const TextSettings& settings, const ModelOptions& options);

class TextTask final : public training::TrainingTask {
 public:
  // `files`: the model of --init-from, if any. All references must outlive the task. INVALID_ARGUMENT if a sequence
  // does not fit into the training or the validation part of the text.
  static absl::StatusOr<std::unique_ptr<TextTask>> Make(const TextSettings& settings,
                                                        const training::Run& run, const Corpus& corpus,
                                                        const ModelOptions& options,
                                                        const std::optional<InitialModel>& files,
                                                        StepOutput output);
  // FLOP/s of a rank, for mfu; 0: unknown.
  void set_peak_flops(double flops) { peak_flops_ = flops; }
  const ModelOptions& options() const { return options_; }
  const models::ModuleModel& language_model() const { return *model_; }
  // What checkpoints keep of the model besides its parameters.
  SavedModel saved_model() const;

  training::TrainedModel model() override;
  training::MakeDryRunModel dry_run_model() override;
  training::NamedValues facts() const override;
  training::NamedValues shared_facts() const override;
  std::string data() const override;
  bool done() const override { return step_ >= settings_.max_iters; }
  training::TaskProgress progress() const override;
  std::string Position() const override;
  double LearningRate() const override { return schedule_.At(step_); }
  training::MicroBatch Next(int k) override;
  absl::Status BeforeFirstStep() override;
  bool EvaluationIsDue() const override { return settings_.EvaluatesAt(step_ + 1); }
  absl::Status EndStep(const training::StepReport& report, bool evaluates) override;
  absl::Status EvaluateOnly() override {
    Losses losses;
    return Evaluate(&losses);
  }
  void Save(parallel::CheckpointState& state) const override;
  absl::Status Restore(const parallel::Checkpoint& checkpoint) override;
  std::vector<training::Recorded> metrics() const override { return output_.metrics; }
  training::HistoryPlots plots() const override { return output_.plots; }

 private:
  struct Batches {
    BlockBatches train, estimated_train, estimated_validation;
  };
  TextTask(const TextSettings& settings, const training::Run& run, const Corpus& corpus,
           const ModelOptions& options, const std::optional<InitialModel>& files, StepOutput output,
           Batches batches);
  void FindPrompt();
  bool samples() const { return settings_.sample_tokens > 0 && corpus_.tokenizer != nullptr; }
  absl::Status Evaluate(Losses* losses);
  absl::Status AgreeOnTokens() const;
  double MeanLoss(const std::string& label, BlockBatches& batches);
  absl::StatusOr<std::string> Sample();
  absl::StatusOr<std::vector<std::int64_t>> SampleByPasses(sampling::Sampler& sampler);

  const TextSettings& settings_;
  const training::Run& run_;
  const Corpus& corpus_;
  const std::optional<InitialModel>& files_;
  ModelOptions options_;
  StepOutput output_;
  std::unique_ptr<models::ModuleModel> model_;
  Batches batches_;
  parallel::LrSchedule schedule_;
  hugging_face::SpecialTokens special_;  // of the files, or the checkpoint, that the model comes from
  double peak_flops_ = 0;
  std::vector<std::int64_t> prompt_tokens_;
  std::string prompt_;     // --sample-prompt without characters outside the vocabulary, at least one token
  std::int64_t step_ = 0;  // steps done
};

}  // namespace plait::text_training

#endif  // PLAIT_TOOLS_TEXT_TRAINING_TEXT_TASK_H_
