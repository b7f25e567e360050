// A step of the solver that times each call.
#ifndef PLAIT_TOOLS_GRU_TRAINING_TIMED_STEP_H_
#define PLAIT_TOOLS_GRU_TRAINING_TIMED_STEP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "base/timer.h"
#include "mgrit/layer_parallel/tensor_step.h"

namespace plait::gru_training {

// Rows of the timer table: ForWD::step, BckWD::step (one step of any level each, but a call of ForwardMany counts once
// for all its steps), gradient (of the weights, over this rank's steps of one C-interval).
class TimedStep final : public mgrit::TensorStep {
 public:
  // `timers` outlives the step.
  TimedStep(std::shared_ptr<mgrit::TensorStep> step, base::TimerSet& timers);

  std::vector<at::Tensor> Parameters() override { return step_->Parameters(); }
  std::int64_t SharedParameters() const override { return step_->SharedParameters(); }
  std::int64_t Evaluations(const mgrit::StepInterval& interval) const override {
    return step_->Evaluations(interval);
  }
  bool LinearisesAhead() const override { return step_->LinearisesAhead(); }
  void SetOwnSteps(std::int64_t first, std::int64_t last) override { step_->SetOwnSteps(first, last); }
  std::unique_ptr<Tape> NewTape() const override { return step_->NewTape(); }
  void Begin(Tape* tape, const models::BlockContext& context) override { step_->Begin(tape, context); }
  void EndForward(absl::Span<const mgrit::StepInterval> steps, const TensorAt& u) override {
    step_->EndForward(steps, u);
  }
  void BeginAdjoint(Tape& tape) override { step_->BeginAdjoint(tape); }
  bool PrefersMany() const override { return step_->PrefersMany(); }
  void Forward(const mgrit::StepInterval& interval, const at::Tensor& u, at::Tensor& out) override;
  void ForwardMany(absl::Span<const Task> tasks) override;
  void Adjoint(const mgrit::StepInterval& interval, const at::Tensor& u, const at::Tensor& lambda,
               at::Tensor& out) override;
  void AddGradients(absl::Span<const mgrit::StepInterval> steps, const TensorAt& u, const TensorAt& lambda,
                    absl::Span<at::Tensor> gradients) override;

 private:
  std::shared_ptr<mgrit::TensorStep> step_;
  base::Timer& forward_;
  base::Timer& adjoint_;
  base::Timer& gradient_;
};

}  // namespace plait::gru_training

#endif  // PLAIT_TOOLS_GRU_TRAINING_TIMED_STEP_H_
