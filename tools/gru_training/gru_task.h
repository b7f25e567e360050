// Training of a GRU classifier on sequences, the time steps solved layer-parallel or taken in turn.
#ifndef PLAIT_TOOLS_GRU_TRAINING_GRU_TASK_H_
#define PLAIT_TOOLS_GRU_TRAINING_GRU_TASK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/timer.h"
#include "data/sequence_set.h"
#include "models/gru/layer_parallel/layer_parallel_gru.h"
#include "models/gru/sequence_classifier.h"
#include "tools/gru_training/activation_bytes.h"
#include "tools/gru_training/report.h"
#include "tools/gru_training/settings.h"
#include "tools/training/epoch_sampler.h"
#include "tools/training/trainer.h"

namespace plait::gru_training {

// What is trained on.
struct Sequences {
  const data::SequenceSet& set;
  std::string name;                  // of the data, for the log
  training::NamedValues facts = {};  // further facts that must be the same in a resumed run
};

struct Outcome {
  double parallel_accuracy = 0, serial_accuracy = 0;  // of the last epoch
  base::Timer epochs, tests;                          // tests of the network that is trained
};

class GruTask final : public training::TrainingTask {
 public:
  // All arguments outlive the task. Initial values are drawn in float32 for every type, from the seed, so
  // that float64 starts from the same numbers.
  GruTask(const GruSettings& settings, const training::Run& run, const Sequences& sequences);
  const Outcome& outcome() const { return outcome_; }
  base::TimerSet& timers() { return timers_; }

  training::TrainedModel model() override;
  training::NamedValues facts() const override;
  training::NamedValues shared_facts() const override;
  std::string data() const override { return set_.description(); }
  bool done() const override { return sampler_.epoch() >= settings_.epochs; }
  training::TaskProgress progress() const override;
  std::string Position() const override { return sampler_.Position(); }
  double LearningRate() const override { return settings_.lr; }
  training::MicroBatch Next(int k) override;
  bool EvaluationIsDue() const override { return sampler_.at_epoch_end(); }
  absl::Status EndStep(const training::StepReport& report, bool evaluates) override;
  absl::Status EvaluateOnly() override;
  void Save(parallel::CheckpointState& state) const override;
  absl::Status Restore(const parallel::Checkpoint& checkpoint) override;
  std::vector<training::Recorded> metrics() const override;
  training::HistoryPlots plots() const override;
  bool always_writes_outputs() const override { return false; }

 private:
  // Which network runs the block: the trained one, or the same parameters propagated serially.
  enum class Solve { kTrained, kSerial };
  training::CoarseHold CoarseHold();
  std::int64_t KeptBytes(const ActivationBytes& bytes) const;
  void BeginStep(double now);
  models::BlockState RunBlock(const models::BlockState& input, const models::BlockContext& context);
  gru::LayerParallelGru& parallel();
  bool solves_parallel() const { return settings_.lp.Solves(run_.mesh.axis("lp").size()); }
  std::int64_t StepSamples() const {
    return settings_.global_batch_size * settings_.gradient_accumulation_steps;
  }
  struct Span {
    double begin = 0, end = 0;
  };
  double InForwardPasses(const std::vector<Span>& spans) const;
  void CountSolve(const char* direction, const mgrit::Solution& solution);
  void CountBackward();
  absl::Status TakeBatch(const training::StepReport& report);
  void PrintProgress(bool end_of_epoch);
  void PrintResiduals();
  TestResult Test(Solve solve);
  struct Tests {
    TestResult parallel, serial;
  };
  absl::StatusOr<Tests> TestBoth(std::int64_t epoch);  // and prints their lines
  absl::Status TestEpoch();

  const GruSettings& settings_;
  const training::Run& run_;
  const data::SequenceSet& set_;
  training::NamedValues facts_;
  base::TimerSet timers_;
  gru::SequenceClassifier initial_;  // float32
  gru::SequenceClassifier model_;    // whose parameters are sharded
  std::unique_ptr<gru::LayerParallelGru> parallel_;
  std::unique_ptr<gru::SerialGru> serial_;
  Solve solve_ = Solve::kTrained;
  training::EpochSampler sampler_;
  TrainProgress progress_;              // of the present epoch
  std::vector<Span> gathers_, blocks_;  // since the present step began
  bool backward_follows_ = false;       // of the last forward solve; not counted yet
  double epoch_begin_ = 0;
  double earlier_seconds_ = 0;  // of the present epoch, before an interruption
  Outcome outcome_;
};

}  // namespace plait::gru_training

#endif  // PLAIT_TOOLS_GRU_TRAINING_GRU_TASK_H_
