// A step of the solver that measures each kind of work: decorates the GRU's step.
//
//   auto work = std::make_shared<TimedWork>(setting.step);
//   gru::LayerParallelGru net(..., [&](auto step) { return work->Around(step); });
//   work->Seconds()[WorkKind::kFineStep] / work->Counts()[WorkKind::kFineStep]
//
// Two clock reads a step. A linearisation happens inside the adjoint step that first needs it: such calls are
// noted apart, and taken apart in Seconds() by what the others of their kind cost on average.
#ifndef PLAIT_TESTS_BENCHMARKS_TIMED_WORK_H_
#define PLAIT_TESTS_BENCHMARKS_TIMED_WORK_H_

#include <cstdint>
#include <memory>
#include <set>
#include <utility>

#include "mgrit/layer_parallel/tensor_step.h"
#include "models/gru/layer_parallel/gru_step.h"
#include "tests/benchmarks/work_kind.h"

namespace plait::benchmarks {

class TimedWork : public std::enable_shared_from_this<TimedWork> {
 public:
  explicit TimedWork(const gru::GruStepOptions& options) : options_(options) {}

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
    std::int64_t pieces = 0;  // of each kind
    double seconds = 0;
  };
  // Splits `mixed` between `kind`, which is in every one of its calls, and `other`.
  void Split(const Mixed& mixed, WorkKind kind, WorkKind other, WorkSeconds& seconds) const;

  gru::GruStepOptions options_;
  // Level and first item of the forward steps whose activations are at hand, as GruStep keeps them.
  std::set<std::pair<int, std::int64_t>> linearised_;
  WorkCounts counts_;
  WorkSeconds seconds_;                    // without the mixed calls
  WorkCounts plain_;                       // calls in seconds_
  PerWorkKind<Mixed> with_linearisation_;  // by adjoint kind
};

}  // namespace plait::benchmarks

#endif  // PLAIT_TESTS_BENCHMARKS_TIMED_WORK_H_
