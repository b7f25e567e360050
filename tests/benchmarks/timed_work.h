// A step of the solver that measures each kind of work: decorates the GRU's step.
//
//   auto work = std::make_shared<TimedWork>(setting.step.coarse_adjoint, steps);
//   gru::LayerParallelGru net(..., [&](auto step) { return work->Around(step); });
//   work->Seconds()[WorkKind::kFineStep] / work->Counts()[WorkKind::kFineStep]
//
// Two clock reads a step. A linearisation happens inside the adjoint step that first needs it, the
// preparation of coarse inputs inside the first coarse step: such calls are noted apart, and taken apart in
// Seconds() by what the others of their kind cost on average.
#ifndef PLAIT_TESTS_BENCHMARKS_TIMED_WORK_H_
#define PLAIT_TESTS_BENCHMARKS_TIMED_WORK_H_

#include <cstdint>
#include <memory>
#include <set>

#include "mgrit/layer_parallel/tensor_step.h"
#include "models/gru/layer_parallel/gru_step.h"
#include "tests/benchmarks/linearised_steps.h"
#include "tests/benchmarks/work_kind.h"

namespace plait::benchmarks {

class TimedWork : public std::enable_shared_from_this<TimedWork> {
 public:
  // `steps`: of level 0, of the whole grid.
  TimedWork(const gru::GruStepOptions& options, std::int64_t steps);

  std::shared_ptr<mgrit::TensorStep> Around(std::shared_ptr<mgrit::TensorStep> step);

  void Reset();
  const WorkCounts& Counts() const { return counts_; }
  WorkSeconds Seconds() const;
  // In all calls: Phi, its adjoint, weight gradients.
  double TotalSeconds() const;

 private:
  friend class TimedStep;

  // Calls that do two kinds of work at once.
  struct Mixed {
    std::int64_t calls = 0;
    double seconds = 0;
  };
  // Splits `mixed` between `kind`, which is in every one of its calls, and `other`.
  void Split(const Mixed& mixed, WorkKind kind, WorkKind other, WorkSeconds& seconds) const;

  gru::GruStepOptions options_;
  std::int64_t steps_;
  LinearisedSteps linearised_;
  std::set<int> prepared_;  // coarse levels whose inputs are there
  WorkCounts counts_;
  WorkSeconds seconds_;                    // without the mixed calls
  WorkCounts plain_;                       // calls in seconds_
  PerWorkKind<Mixed> with_linearisation_;  // by adjoint kind
  Mixed with_input_;
};

}  // namespace plait::benchmarks

#endif  // PLAIT_TESTS_BENCHMARKS_TIMED_WORK_H_
