#include "mgrit/layer_parallel/timed_step.h"

#include <algorithm>
#include <chrono>

namespace plait::mgrit {

double TimedStep::Now() const {
  if (clock_) return clock_();
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Per solve, because several forward solves may wait for their adjoint.
struct TimedStep::TimedTape final : TensorStep::Tape {
  explicit TimedTape(std::unique_ptr<Tape> of_step) : tape(std::move(of_step)) {}
  void Clear() override {
    linearised.clear();
    tape->Clear();
  }

  std::unique_ptr<Tape> tape;
  std::set<std::pair<int, std::int64_t>> linearised;  // level and first fine step
};

std::unique_ptr<TensorStep::Tape> TimedStep::NewTape() const {
  return std::make_unique<TimedTape>(step_->NewTape());
}

void TimedStep::Begin(Tape* tape, const models::BlockContext& context) {
  tape_ = static_cast<TimedTape*>(tape);
  if (tape_ != nullptr) tape_->linearised.clear();
  step_->Begin(tape_ == nullptr ? nullptr : tape_->tape.get(), context);
}

void TimedStep::BeginAdjoint(Tape& tape) {
  tape_ = static_cast<TimedTape*>(&tape);
  step_->BeginAdjoint(*tape_->tape);
}

bool TimedStep::Linearises(const StepInterval& interval) {
  return tape_->linearised.insert({interval.level, interval.fine_start}).second;
}

void TimedStep::Add(WorkKind kind, double seconds, std::int64_t pieces) {
  counts_[kind] += pieces;
  plain_[kind] += pieces;
  seconds_[kind] += seconds;
}

void TimedStep::EndForward(absl::Span<const StepInterval> steps, const TensorAt& u) {
  const double seconds = SecondsOf([&] { step_->EndForward(steps, u); });
  if (!step_->LinearisesAhead()) return;
  std::int64_t pieces = 0;
  for (const StepInterval& interval : steps)
    pieces += Linearises(interval) ? step_->Evaluations(interval) : 0;
  if (pieces > 0) Add(WorkKind::kLinearisation, seconds, pieces);
}

WorkKind TimedStep::ForwardKind(const StepInterval& interval) {
  if (interval.level > 0) return WorkKind::kCoarseStep;
  if (!interval.final) return WorkKind::kFineStep;
  if (tape_ != nullptr) Linearises(interval);
  return WorkKind::kKeptFineStep;
}

void TimedStep::Forward(const StepInterval& interval, const at::Tensor& u, at::Tensor& out) {
  const double seconds = SecondsOf([&] { step_->Forward(interval, u, out); });
  Add(ForwardKind(interval), seconds, step_->Evaluations(interval));
}

void TimedStep::ForwardMany(absl::Span<const Task> tasks) {
  const double seconds = SecondsOf([&] { step_->ForwardMany(tasks); });
  double evaluations = 0;
  for (const Task& task : tasks) evaluations += static_cast<double>(step_->Evaluations(task.interval));
  for (const Task& task : tasks) {
    const std::int64_t pieces = step_->Evaluations(task.interval);
    Add(ForwardKind(task.interval), seconds * static_cast<double>(pieces) / evaluations, pieces);
  }
}

void TimedStep::Adjoint(const StepInterval& interval, const at::Tensor& u, const at::Tensor& lambda,
                        at::Tensor& out) {
  const double seconds = SecondsOf([&] { step_->Adjoint(interval, u, lambda, out); });
  const WorkKind fine = interval.final ? WorkKind::kKeptFineAdjoint : WorkKind::kFineAdjoint;
  const WorkKind kind = interval.level > 0 ? WorkKind::kCoarseAdjoint : fine;
  const std::int64_t pieces = step_->Evaluations(interval);
  if (!Linearises(interval)) return Add(kind, seconds, pieces);
  counts_[kind] += pieces;
  counts_[WorkKind::kLinearisation] += pieces;
  with_linearisation_[kind].pieces += pieces;
  with_linearisation_[kind].seconds += seconds;
}

void TimedStep::AddGradients(absl::Span<const StepInterval> steps, const TensorAt& u, const TensorAt& lambda,
                             absl::Span<at::Tensor> gradients) {
  const double seconds = SecondsOf([&] { step_->AddGradients(steps, u, lambda, gradients); });
  Add(WorkKind::kGradient, seconds, static_cast<std::int64_t>(steps.size()));
}

void TimedStep::Reset() {
  counts_ = plain_ = WorkCounts();
  seconds_ = WorkSeconds();
  with_linearisation_ = PerWorkKind<Mixed>();
}

WorkTimes TimedStep::times() const {
  WorkTimes times = {counts_, seconds_};
  // If all calls of a kind included a linearisation, its cost is taken to be that of a kept step.
  const auto mean = [&](WorkKind of) {
    return plain_[of] > 0 ? seconds_[of] / static_cast<double>(plain_[of]) : 0.0;
  };
  for (const WorkKind kind : {WorkKind::kFineAdjoint, WorkKind::kKeptFineAdjoint, WorkKind::kCoarseAdjoint}) {
    const Mixed& mixed = with_linearisation_[kind];
    const double pieces = static_cast<double>(mixed.pieces);
    const double own =
        plain_[kind] > 0 ? mean(kind) * pieces : mixed.seconds - pieces * mean(WorkKind::kKeptFineStep);
    times.seconds[kind] += std::clamp(own, 0.0, mixed.seconds);
    times.seconds[WorkKind::kLinearisation] += std::clamp(mixed.seconds - own, 0.0, mixed.seconds);
  }
  return times;
}

}  // namespace plait::mgrit
