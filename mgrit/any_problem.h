// A problem as the solver sees it, whatever its states are. Problems derive from Problem<S> (mgrit/problem.h), which says what
// each operation is to its author; this is when the solver calls them.
#ifndef PLAIT_MGRIT_ANY_PROBLEM_H_
#define PLAIT_MGRIT_ANY_PROBLEM_H_

#include <cstddef>
#include <cstdint>
#include <memory>

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

// The solver calls no method from two threads, and `u` and `out` are never the same state.
class AnyProblem {
 public:
  virtual ~AnyProblem() = default;

  virtual std::unique_ptr<State> NewState(int level) = 0;
  // The initial condition for fine point 0, the initial guess for every other.
  virtual void Initialize(std::int64_t point, double t, State& u) = 0;
  virtual void Step(const StepInterval& interval, const State& u, State& out) = 0;
  // Equations of the problem's own, A(u_stop, u_start) = g, of which Step gives the u_stop for g = 0 (any scaling: an
  // implicit step's function before it is solved). Then the solver measures and restricts r = g - A, which costs no
  // step, and coarse equations are A_c(U_k, U_{k-1}) = R r_k + A_c(V_k, V_{k-1}). Without (the default), A is u_stop -
  // Phi(u_start). EvaluateEquation: out = A(u_stop, u_start). StepWithRightHandSide: solves A(out, u) = g.
  virtual bool HasEquation() const { return false; }
  virtual void EvaluateEquation(const StepInterval& interval, const State& u_start, const State& u_stop,
                                State& out) = 0;
  virtual void StepWithRightHandSide(const StepInterval& interval, const State& u, const State& g,
                                     State& out) = 0;
  // Independent steps, one of each C-interval that a rank has whole: the first steps of all of them, then the second
  // ones, and so on, to the C-points. If PrefersMany, called instead of Step in the sweeps that end with steps to
  // C-points (CF-sweeps, the sweep before a restriction, ResidualTime::kCycle) where all points are stored; with one task or
  // more. Not in sweeps of F-points alone (after a coarse correction, the final one), on the coarsest level, in the
  // forming of coarse equations, for intervals that two ranks share, nor where HasEquation: those call Step. Which
  // intervals are shared depends on the ranks, so results must be the bits that Step gives, else those of the solve
  // depend on the ranks.
  virtual void StepMany(absl::Span<const StepTask> tasks);
  // True if the solver should offer all its intervals together; false to walk interval after interval, which
  // is kinder to the cache.
  virtual bool PrefersMany() const { return false; }
  // True if steps are only as accurate as StepInterval::InnerTolerance asks for. A solve then takes a residual as
  // converged only in an iteration with tight tolerances.
  virtual bool IsInexact() const { return false; }

  virtual void Copy(const State& x, State& y) = 0;
  // y = alpha x + beta y
  virtual void Combine(double alpha, const State& x, double beta, State& y) = 0;
  // Norms of residuals are put one at a time while a cycle runs and taken once an iteration, so that states
  // on a device are read once. TakeNorms writes the squares of the slots put since it was last called.
  virtual void PutNorm(std::int64_t slot, const State& x) = 0;
  virtual void TakeNorms(absl::Span<double> squares) = 0;
  // The memory of `x` where messages can be sent from and received into: states on a CUDA device then never
  // pass through the host. Without data, messages are packed.
  virtual StateMemory Memory(State& x) = 0;
  virtual std::int64_t PackedBytes(const State& x) = 0;
  virtual void Pack(const State& x, absl::Span<std::byte> bytes) = 0;
  virtual void Unpack(absl::Span<const std::byte> bytes, State& x) = 0;

  // For the delta correction (Options::delta_rank) alone: out = (d Phi / d u)(u) w, and direction `index` to begin with,
  // linearly independent of those before it.
  virtual void StepTangent(const StepInterval& interval, const State& u, const State& w, State& out) = 0;
  virtual void InitializeDirection(int index, State& w) = 0;
  virtual double Dot(const State& x, const State& y) = 0;

  // Spatial coarsening. If true, Restrict and Interpolate are called between fine_level and fine_level + 1.
  virtual bool CoarsensSpace() const { return false; }
  virtual void Restrict(int fine_level, const State& fine, State& coarse) = 0;
  virtual void Interpolate(int fine_level, const State& coarse, State& fine) = 0;
};

// Ends the program: the problem does not define an operation (an adjoint, a shape), yet it is asked for.
[[noreturn]] void MissingOperation(const char* name);

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_ANY_PROBLEM_H_
