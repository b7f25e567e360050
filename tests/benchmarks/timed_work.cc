#include "tests/benchmarks/timed_work.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace plait::benchmarks {
namespace {

template <typename Call>
double SecondsOf(const Call& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

class TimedStep final : public mgrit::TensorStep {
 public:
  TimedStep(std::shared_ptr<TimedWork> work, std::shared_ptr<mgrit::TensorStep> step)
      : work_(std::move(work)), step_(std::move(step)) {}

  std::vector<at::Tensor> Parameters() override { return step_->Parameters(); }
  std::int64_t SharedParameters() const override { return step_->SharedParameters(); }
  void SetOwnSteps(std::int64_t first, std::int64_t last) override { step_->SetOwnSteps(first, last); }
  std::unique_ptr<Tape> NewTape() const override { return step_->NewTape(); }
  void Begin(Tape* tape, const models::BlockContext& context) override {
    work_->linearised_.clear();
    step_->Begin(tape, context);
  }
  void EndForward(absl::Span<const mgrit::StepInterval> steps, const TensorAt& u) override {
    step_->EndForward(steps, u);
  }
  void BeginAdjoint(Tape& tape) override { step_->BeginAdjoint(tape); }

  void Forward(const mgrit::StepInterval& interval, const at::Tensor& u, at::Tensor& out) override {
    const double seconds = SecondsOf([&] { step_->Forward(interval, u, out); });
    if (interval.level > 0) return Add(WorkKind::kCoarseStep, seconds, SubstepsOf(interval));
    if (interval.final) work_->linearised_.insert({0, interval.fine_start});
    Add(interval.final ? WorkKind::kKeptFineStep : WorkKind::kFineStep, seconds);
  }

  void Adjoint(const mgrit::StepInterval& interval, const at::Tensor& u, const at::Tensor& lambda,
               at::Tensor& out) override {
    const double seconds = SecondsOf([&] { step_->Adjoint(interval, u, lambda, out); });
    const WorkKind fine = interval.final ? WorkKind::kKeptFineAdjoint : WorkKind::kFineAdjoint;
    const WorkKind kind = interval.level > 0 ? WorkKind::kCoarseAdjoint : fine;
    const std::int64_t substeps = SubstepsOf(interval);
    if (!work_->linearised_.insert({interval.level, interval.fine_start}).second) {
      return Add(kind, seconds, substeps);
    }
    work_->counts_[kind] += substeps;
    work_->counts_[WorkKind::kLinearisation] += substeps;
    work_->with_linearisation_[kind].pieces += substeps;
    work_->with_linearisation_[kind].seconds += seconds;
  }

  void AddGradients(absl::Span<const mgrit::StepInterval> steps, const TensorAt& u, const TensorAt& lambda,
                    absl::Span<at::Tensor> gradients) override {
    Add(WorkKind::kGradient, SecondsOf([&] { step_->AddGradients(steps, u, lambda, gradients); }));
  }

 private:
  std::int64_t SubstepsOf(const mgrit::StepInterval& interval) const {
    return gru::SubstepsOf(work_->options_, interval.level, interval.fine_stop - interval.fine_start);
  }

  void Add(WorkKind kind, double seconds, std::int64_t pieces = 1) {
    work_->counts_[kind] += pieces;
    work_->plain_[kind] += pieces;
    work_->seconds_[kind] += seconds;
  }

  std::shared_ptr<TimedWork> work_;
  std::shared_ptr<mgrit::TensorStep> step_;
};

std::shared_ptr<mgrit::TensorStep> TimedWork::Around(std::shared_ptr<mgrit::TensorStep> step) {
  return std::make_shared<TimedStep>(shared_from_this(), std::move(step));
}

void TimedWork::Reset() {
  counts_ = plain_ = WorkCounts();
  seconds_ = WorkSeconds();
  with_linearisation_ = PerWorkKind<Mixed>();
}

void TimedWork::Split(const Mixed& mixed, WorkKind kind, WorkKind other, WorkSeconds& seconds) const {
  if (mixed.pieces == 0) return;
  // Where none does `kind` alone, a kept step tells what a linearisation costs.
  const auto mean = [&](WorkKind of) {
    return plain_[of] > 0 ? seconds_[of] / static_cast<double>(plain_[of]) : 0.0;
  };
  const double pieces = static_cast<double>(mixed.pieces);
  const double own =
      plain_[kind] > 0 ? mean(kind) * pieces : mixed.seconds - pieces * mean(WorkKind::kKeptFineStep);
  seconds[kind] += std::clamp(own, 0.0, mixed.seconds);
  seconds[other] += std::clamp(mixed.seconds - own, 0.0, mixed.seconds);
}

WorkSeconds TimedWork::Seconds() const {
  WorkSeconds seconds = seconds_;
  for (const WorkKind kind : {WorkKind::kFineAdjoint, WorkKind::kKeptFineAdjoint, WorkKind::kCoarseAdjoint}) {
    Split(with_linearisation_[kind], kind, WorkKind::kLinearisation, seconds);
  }
  return seconds;
}

double TimedWork::TotalSeconds() const {
  double total = 0;
  for (std::size_t kind = 0; kind < kWorkKinds; ++kind) {
    total += seconds_.values[kind] + with_linearisation_.values[kind].seconds;
  }
  return total;
}

}  // namespace plait::benchmarks
