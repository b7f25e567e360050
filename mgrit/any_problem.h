// The type-erased interface through which the solver calls a problem. User problems derive from Problem<S>
// (mgrit/problem.h); the comments here say when the solver calls each operation.
#ifndef PLAIT_MGRIT_ANY_PROBLEM_H_
#define PLAIT_MGRIT_ANY_PROBLEM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/types/span.h"
#include "mgrit/state.h"
#include "mgrit/step_interval.h"

namespace plait::mgrit {

// One step of a batch of independent steps: *out = Phi(*u).
struct StepTask {
  StepInterval interval;
  const State* u = nullptr;
  State* out = nullptr;
};

// The solver calls all methods from one thread, and `u` and `out` are never the same state.
class AnyProblem {
 public:
  virtual ~AnyProblem() = default;

  virtual std::unique_ptr<State> NewState(int level) = 0;
  // The initial condition for fine point 0, the initial guess for every other.
  virtual void Initialize(std::int64_t point, double t, State& u) = 0;
  virtual void Step(const StepInterval& interval, const State& u, State& out) = 0;
  // True if the problem defines its own equation A(u_stop, u_start) = g, of any scaling, of which Step solves
  // g = 0: for example the nonlinear function of an implicit step (XBraid's SetResidual). The solver then measures
  // and restricts r = g - A, which needs no step, and the coarse equations are
  // A_c(U_k, U_{k-1}) = R r_k + A_c(V_k, V_{k-1}). By default, A is u_stop - Phi(u_start).
  // EvaluateEquation: out = A(u_stop, u_start). StepWithRightHandSide: solves A(out, u) = g for out.
  virtual bool HasEquation() const { return false; }
  virtual void EvaluateEquation(const StepInterval& interval, const State& u_start, const State& u_stop,
                                State& out) = 0;
  virtual void StepWithRightHandSide(const StepInterval& interval, const State& u, const State& g,
                                     State& out) = 0;
  // A batch of one or more independent steps, one per C-interval that lies entirely on this rank: first the first
  // step of every interval, then the second, and so on up to the C-points. If PrefersMany, called instead of Step in
  // sweeps that end with steps to C-points (CF-sweeps, the sweep before a restriction, ResidualTime::kCycle), with
  // Storage::kAllPoints. Step is still called in sweeps of F-points only (after a coarse correction, the final one),
  // on the coarsest level, when coarse equations are formed, for intervals that two ranks share, and if HasEquation.
  // Which intervals are shared depends on the number of ranks: results must be bitwise those of Step, or the
  // solution depends on the number of ranks.
  virtual void StepMany(absl::Span<const StepTask> tasks);
  // True if the solver should batch the steps of all intervals; false to process one interval after another, which
  // uses caches better.
  virtual bool PrefersMany() const { return false; }
  // True if steps are only as accurate as StepInterval::InnerTolerance requests. A solve then converges only in an
  // iteration that used tight tolerances.
  virtual bool IsInexact() const { return false; }

  // Why the solution needs the initial condition, as a clause of an error; "": it may be periodic (Options::periodic).
  virtual std::string WhyNotPeriodic() const { return ""; }

  virtual void Copy(const State& x, State& y) = 0;
  // y = alpha x + beta y
  virtual void Combine(double alpha, const State& x, double beta, State& y) = 0;
  // Whether all numbers of `x` are finite, also those that no norm measures.
  virtual bool IsFinite(const State& x) = 0;
  // Residual norms are recorded one at a time during a cycle (PutNorm) and read once per iteration (TakeNorms), so
  // that states on a GPU need one synchronization per iteration. TakeNorms writes the squared norms of the slots
  // recorded since the last call.
  virtual void PutNorm(std::int64_t slot, const State& x) = 0;
  virtual void TakeNorms(absl::Span<double> squares) = 0;
  // The memory of `x`, which messages are sent from and received into directly, so that states on a CUDA device
  // never pass through the host. If its `data` is null, messages are packed.
  virtual StateMemory Memory(State& x) = 0;
  virtual std::int64_t PackedBytes(const State& x) = 0;
  virtual void Pack(const State& x, absl::Span<std::byte> bytes) = 0;
  virtual void Unpack(absl::Span<const std::byte> bytes, State& x) = 0;

  // Only for the delta correction (Options::delta_rank). StepTangent: out = (d Phi / d u)(u) w. InitializeDirection:
  // the initial direction number `index`, linearly independent of those before it.
  virtual void StepTangent(const StepInterval& interval, const State& u, const State& w, State& out) = 0;
  virtual void InitializeDirection(int index, State& w) = 0;
  virtual double Dot(const State& x, const State& y) = 0;

  // Spatial coarsening. If true, Restrict and Interpolate are called between fine_level and fine_level + 1.
  virtual bool CoarsensSpace() const { return false; }
  virtual void Restrict(int fine_level, const State& fine, State& coarse) = 0;
  virtual void Interpolate(int fine_level, const State& coarse, State& fine) = 0;
};

// Ends the program with a message: the solve needs an operation that the problem does not define.
[[noreturn]] void MissingOperation(const char* name);

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_ANY_PROBLEM_H_
