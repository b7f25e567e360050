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
  bool SharedParameters() const override { return step_->SharedParameters(); }
  void SetOwnSteps(std::int64_t first, std::int64_t last) override { step_->SetOwnSteps(first, last); }
  void Begin(bool differentiable) override {
    work_->linearised_.Clear();
    work_->prepared_.clear();
    step_->Begin(differentiable);
  }
  void BeginAdjoint() override { step_->BeginAdjoint(); }

  void Forward(const mgrit::StepInterval& interval, const at::Tensor& u, at::Tensor& out) override {
    const double seconds = SecondsOf([&] { step_->Forward(interval, u, out); });
    if (interval.level > 0) {
      AddCoarse(interval, seconds);
      return;
    }
    if (interval.final) work_->linearised_.Add(0, interval.fine_start);
    Add(interval.final ? WorkKind::kKeptFineStep : WorkKind::kFineStep, seconds);
  }

  void Adjoint(const mgrit::StepInterval& interval, const at::Tensor& u, const at::Tensor& lambda,
               at::Tensor& out) override {
    const double seconds = SecondsOf([&] { step_->Adjoint(interval, u, lambda, out); });
    const WorkKind fine = interval.final ? WorkKind::kKeptFineAdjoint : WorkKind::kFineAdjoint;
    const WorkKind kind = interval.level > 0 ? WorkKind::kCoarseAdjoint : fine;
    if (!work_->linearised_.Add(interval.level, interval.fine_start)) {
      Add(kind, seconds);
      return;
    }
    ++work_->counts_[kind];
    ++work_->counts_[WorkKind::kLinearisation];
    AddMixed(work_->with_linearisation_[kind], seconds);
  }

  void AddGradients(absl::Span<const mgrit::StepInterval> steps, const TensorAt& u, const TensorAt& lambda,
                    absl::Span<at::Tensor> gradients) override {
    Add(WorkKind::kGradient, SecondsOf([&] { step_->AddGradients(steps, u, lambda, gradients); }));
  }

 private:
  void Add(WorkKind kind, double seconds) {
    ++work_->counts_[kind];
    ++work_->plain_[kind];
    work_->seconds_[kind] += seconds;
  }

  static void AddMixed(TimedWork::Mixed& mixed, double seconds) {
    ++mixed.calls;
    mixed.seconds += seconds;
  }

  void AddCoarse(const mgrit::StepInterval& interval, double seconds) {
    const bool means = work_->options_.coarse_input == gru::CoarseInput::kMean;
    if (!means || !work_->prepared_.insert(interval.level).second) {
      Add(WorkKind::kCoarseStep, seconds);
      return;
    }
    ++work_->counts_[WorkKind::kCoarseStep];
    work_->counts_[WorkKind::kCoarseInput] += work_->steps_ / (interval.fine_stop - interval.fine_start);
    AddMixed(work_->with_input_, seconds);
  }

  std::shared_ptr<TimedWork> work_;
  std::shared_ptr<mgrit::TensorStep> step_;
};

TimedWork::TimedWork(const gru::GruStepOptions& options, std::int64_t steps)
    : options_(options), steps_(steps), linearised_(options.coarse_adjoint) {}

std::shared_ptr<mgrit::TensorStep> TimedWork::Around(std::shared_ptr<mgrit::TensorStep> step) {
  return std::make_shared<TimedStep>(shared_from_this(), std::move(step));
}

void TimedWork::Reset() {
  counts_ = plain_ = WorkCounts();
  seconds_ = WorkSeconds();
  with_linearisation_ = PerWorkKind<Mixed>();
  with_input_ = Mixed();
}

void TimedWork::Split(const Mixed& mixed, WorkKind kind, WorkKind other, WorkSeconds& seconds) const {
  if (mixed.calls == 0) return;
  // Where no call does `kind` alone, a kept step tells what a linearisation costs.
  const auto mean = [&](WorkKind of) {
    return plain_[of] > 0 ? seconds_[of] / static_cast<double>(plain_[of]) : 0.0;
  };
  const double calls = static_cast<double>(mixed.calls);
  const double own =
      plain_[kind] > 0 ? mean(kind) * calls : mixed.seconds - calls * mean(WorkKind::kKeptFineStep);
  seconds[kind] += std::clamp(own, 0.0, mixed.seconds);
  seconds[other] += std::clamp(mixed.seconds - own, 0.0, mixed.seconds);
}

WorkSeconds TimedWork::Seconds() const {
  WorkSeconds seconds = seconds_;
  Split(with_input_, WorkKind::kCoarseStep, WorkKind::kCoarseInput, seconds);
  for (const WorkKind kind : {WorkKind::kFineAdjoint, WorkKind::kKeptFineAdjoint, WorkKind::kCoarseAdjoint}) {
    Split(with_linearisation_[kind], kind, WorkKind::kLinearisation, seconds);
  }
  return seconds;
}

double TimedWork::TotalSeconds() const {
  double total = with_input_.seconds;
  for (std::size_t kind = 0; kind < kWorkKinds; ++kind) {
    total += seconds_.values[kind] + with_linearisation_.values[kind].seconds;
  }
  return total;
}

}  // namespace plait::benchmarks
