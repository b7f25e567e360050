// What the solver needs of a time-stepping problem: a step and a few operations on its state.
//
//   struct Decay : plait::mgrit::Problem<double> {
//     void Initialize(std::int64_t point, double t, double& u) override { u = point == 0 ? 1.0 : 0.0; }
//     void Step(const StepInterval& s, const double& u, double& out) override { out = u / (1 + s.dt()); }
//   };
//
// A state is any type S with StateOperations<S> (mgrit/state.h): double, std::vector<double>, std::array,
// at::Tensor (mgrit/layer_parallel/tensor_state.h). mgrit/testing/problem_conformance.h checks a problem of
// one's own.
#ifndef PLAIT_MGRIT_PROBLEM_H_
#define PLAIT_MGRIT_PROBLEM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/types/span.h"
#include "mgrit/state.h"

namespace plait::mgrit {

// One step: from point `index` to point `index + 1` of `level`; level 0 is the finest. A step of a coarse
// level spans the fine points fine_start ... fine_stop.
struct StepInterval {
  int level = 0;
  std::int64_t index = 0;
  std::int64_t fine_start = 0;
  std::int64_t fine_stop = 0;
  double t_start = 0;
  double t_stop = 0;
  // `u` is the final state of its point and `out` will be that of the next: part of the sweep that shows the
  // solution (FinalRelaxation). A problem that will be differentiated may keep what its adjoint needs.
  bool final = false;

  double dt() const { return t_stop - t_start; }
};

// One step of a batch of independent steps: *out = Phi(*u).
struct StepTask {
  StepInterval interval;
  const State* u = nullptr;
  State* out = nullptr;
};

// The problem as the solver sees it; users derive from Problem<S> below. The solver calls no method from two
// threads, and `u` and `out` are never the same state.
class AnyProblem {
 public:
  virtual ~AnyProblem() = default;

  virtual std::unique_ptr<State> NewState(int level) = 0;
  // The initial condition for fine point 0, the initial guess for every other.
  virtual void Initialize(std::int64_t point, double t, State& u) = 0;
  virtual void Step(const StepInterval& interval, const State& u, State& out) = 0;
  // All tasks are independent. The results must be the bits that Step gives.
  virtual void StepMany(absl::Span<const StepTask> tasks);
  // True if the solver should offer all its intervals together; false to walk interval after interval, which
  // is kinder to the cache.
  virtual bool PrefersMany() const { return false; }

  virtual void Copy(const State& x, State& y) = 0;
  // y = alpha x + beta y
  virtual void Combine(double alpha, const State& x, double beta, State& y) = 0;
  virtual double NormSquared(const State& x) = 0;
  virtual std::int64_t PackedBytes(const State& x) = 0;
  virtual void Pack(const State& x, absl::Span<std::byte> bytes) = 0;
  virtual void Unpack(absl::Span<const std::byte> bytes, State& x) = 0;

  // Spatial coarsening. If true, Restrict and Interpolate are called between fine_level and fine_level + 1.
  virtual bool CoarsensSpace() const { return false; }
  virtual void Restrict(int fine_level, const State& fine, State& coarse) = 0;
  virtual void Interpolate(int fine_level, const State& coarse, State& fine) = 0;
};

template <typename S>
class Problem : public AnyProblem {
 public:
  using Operations = StateOperations<S>;

  // A state to write into; its content does not matter, its shape does.
  virtual S Make(int /*level*/) { return S{}; }
  virtual void Initialize(std::int64_t point, double t, S& u) = 0;
  virtual void Step(const StepInterval& interval, const S& u, S& out) = 0;
  // (d Phi / d u)^T at `u`, applied to `lambda`: what AdjointProblem (mgrit/adjoint.h) steps with.
  virtual void StepAdjoint(const StepInterval& interval, const S& u, const S& lambda, S& out);
  // Spatial coarsening, both linear. Restriction serves states and residuals alike.
  virtual void Restrict(int fine_level, const S& fine, S& coarse);
  virtual void Interpolate(int fine_level, const S& coarse, S& fine);

  // The erased side.
  std::unique_ptr<State> NewState(int level) final { return std::make_unique<StateOf<S>>(Make(level)); }
  void Initialize(std::int64_t point, double t, State& u) final { Initialize(point, t, Value<S>(u)); }
  void Step(const StepInterval& interval, const State& u, State& out) final {
    Step(interval, Value<S>(u), Value<S>(out));
  }
  void Copy(const State& x, State& y) final { Operations::Copy(Value<S>(x), Value<S>(y)); }
  void Combine(double alpha, const State& x, double beta, State& y) final {
    Operations::Combine(alpha, Value<S>(x), beta, Value<S>(y));
  }
  double NormSquared(const State& x) final { return Operations::NormSquared(Value<S>(x)); }
  std::int64_t PackedBytes(const State& x) final { return Operations::PackedBytes(Value<S>(x)); }
  void Pack(const State& x, absl::Span<std::byte> bytes) final { Operations::Pack(Value<S>(x), bytes); }
  void Unpack(absl::Span<const std::byte> bytes, State& x) final { Operations::Unpack(bytes, Value<S>(x)); }
  void Restrict(int fine_level, const State& fine, State& coarse) final {
    Restrict(fine_level, Value<S>(fine), Value<S>(coarse));
  }
  void Interpolate(int fine_level, const State& coarse, State& fine) final {
    Interpolate(fine_level, Value<S>(coarse), Value<S>(fine));
  }
};

// Ends the program: the problem has no adjoint (or no transfer operator), yet one is asked for.
[[noreturn]] void MissingOperation(const char* name);

template <typename S>
void Problem<S>::StepAdjoint(const StepInterval&, const S&, const S&, S&) {
  MissingOperation("StepAdjoint");
}
template <typename S>
void Problem<S>::Restrict(int, const S&, S&) {
  MissingOperation("Restrict");
}
template <typename S>
void Problem<S>::Interpolate(int, const S&, S&) {
  MissingOperation("Interpolate");
}

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_PROBLEM_H_
