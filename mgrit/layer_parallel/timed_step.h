// A TensorStep that times each call of another one, by kind of work. Private to LayerParallel.
#ifndef PLAIT_MGRIT_LAYER_PARALLEL_TIMED_STEP_H_
#define PLAIT_MGRIT_LAYER_PARALLEL_TIMED_STEP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "mgrit/layer_parallel/tensor_step.h"
#include "mgrit/layer_parallel/work_times.h"

namespace plait::mgrit {

// Costs two clock reads per call.
class TimedStep final : public TensorStep {
 public:
  explicit TimedStep(std::shared_ptr<TensorStep> step) : step_(std::move(step)) {}

  WorkTimes times() const;
  void Reset();
  // Seconds. Empty: the host's steady clock.
  void set_clock(std::function<double()> clock) { clock_ = std::move(clock); }

  std::vector<at::Tensor> Parameters() override { return step_->Parameters(); }
  std::int64_t SharedParameters() const override { return step_->SharedParameters(); }
  std::int64_t Evaluations(const StepInterval& interval) const override {
    return step_->Evaluations(interval);
  }
  bool LinearisesAhead() const override { return step_->LinearisesAhead(); }
  void SetOwnSteps(std::int64_t first, std::int64_t last) override { step_->SetOwnSteps(first, last); }
  std::unique_ptr<Tape> NewTape() const override;
  void SetConditioning(const std::vector<at::Tensor>& conditioning) override {
    step_->SetConditioning(conditioning);
  }
  void Begin(Tape* tape, const models::BlockContext& context) override;
  void EndForward(absl::Span<const StepInterval> steps, const TensorAt& u) override;
  void BeginAdjoint(Tape& tape) override;
  void Forward(const StepInterval& interval, const at::Tensor& u, at::Tensor& out) override;
  void ForwardMany(absl::Span<const Task> tasks) override;
  bool PrefersMany() const override { return step_->PrefersMany(); }
  void Adjoint(const StepInterval& interval, const at::Tensor& u, const at::Tensor& lambda,
               at::Tensor& out) override;
  void AddGradients(absl::Span<const StepInterval> steps, const TensorAt& u, const TensorAt& lambda,
                    absl::Span<at::Tensor> gradients) override;

 private:
  struct TimedTape;
  // Calls that include a linearisation.
  struct Mixed {
    std::int64_t pieces = 0;  // of each kind
    double seconds = 0;
  };

  double Now() const;
  template <typename Call>
  double SecondsOf(const Call& call) const {
    const double start = Now();
    call();
    return Now() - start;
  }
  // The kind of a forward call; marks the step as linearised if it is kept.
  WorkKind ForwardKind(const StepInterval& interval);
  void Add(WorkKind kind, double seconds, std::int64_t pieces);
  // True on the first call for this forward step in the current solve.
  bool Linearises(const StepInterval& interval);

  std::shared_ptr<TensorStep> step_;
  std::function<double()> clock_;
  TimedTape* tape_ = nullptr;  // of the current solve; null: not recorded
  WorkCounts counts_;
  WorkSeconds seconds_;                    // without the mixed calls
  WorkCounts plain_;                       // evaluations in seconds_
  PerWorkKind<Mixed> with_linearisation_;  // by adjoint kind
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_LAYER_PARALLEL_TIMED_STEP_H_
