#include "tools/gru_training/timed_step.h"

#include <utility>

namespace plait::gru_training {

TimedStep::TimedStep(std::shared_ptr<mgrit::TensorStep> step, base::TimerSet& timers)
    : step_(std::move(step)),
      forward_(timers.Get("ForWD::step")),
      adjoint_(timers.Get("BckWD::step")),
      gradient_(timers.Get("gradient")) {}

void TimedStep::Forward(const mgrit::StepInterval& interval, const at::Tensor& u, at::Tensor& out) {
  const base::ScopedTimer scope(forward_);
  step_->Forward(interval, u, out);
}

void TimedStep::ForwardMany(absl::Span<const Task> tasks) {
  const base::ScopedTimer scope(forward_);
  step_->ForwardMany(tasks);
}

void TimedStep::Adjoint(const mgrit::StepInterval& interval, const at::Tensor& u, const at::Tensor& lambda,
                        at::Tensor& out) {
  const base::ScopedTimer scope(adjoint_);
  step_->Adjoint(interval, u, lambda, out);
}

void TimedStep::AddGradients(absl::Span<const mgrit::StepInterval> steps, const TensorAt& u,
                             const TensorAt& lambda, absl::Span<at::Tensor> gradients) {
  const base::ScopedTimer scope(gradient_);
  step_->AddGradients(steps, u, lambda, gradients);
}

}  // namespace plait::gru_training
