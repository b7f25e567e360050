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

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "mgrit/state.h"

namespace plait::mgrit {

// One step: from point `index` to point `index + 1` of `level`; level 0 is the finest. A step of a coarse
// level spans the fine points fine_start ... fine_stop.
struct StepInterval {
  static constexpr std::int64_t kNoIndex = -1;

  int level = 0;
  // In an adjoint solve, kNoIndex on a coarse level whose stride does not divide the number of steps: its
  // intervals, counted from the other end, are not those of the forward level.
  std::int64_t index = 0;
  std::int64_t fine_start = 0;
  std::int64_t fine_stop = 0;
  double t_start = 0;
  double t_stop = 0;
  // `u` is the final state of its point and `out` will be that of the next: part of the sweep that shows the
  // solution (FinalRelaxation). A problem that will be differentiated may keep what its adjoint needs. With
  // all states stored, every step to an F-point of level 0 is final once in a solve; C-points follow from the
  // coarse levels, and no step to them is final. In a serial sweep every step is.
  bool final = false;

  // Of the solve under way: its iteration, from 0, and how far it has come, from 0 (no residual yet) to 1 (near
  // the tolerance; always, if there is none).
  int iteration = 0;
  double progress = 1;
  // The current iterate at the end of the step, a guess of `out` (on a coarse level, of `out` and the
  // right-hand side). Null where there is none yet or it is not stored (Storage). It may be `out` itself: to be
  // read before that is written. In an adjoint step, of `lambda`.
  const State* iterate = nullptr;

  double dt() const { return t_stop - t_start; }
  // The tolerance for a solver inside the step: `loose` at first, `tight` in the end, between them in the
  // logarithm as the residual falls (XBraid's braid_GetSpatialAccuracy, which stays loose on coarse levels: full
  // approximation does not converge on errors of coarse steps that change from visit to visit). See
  // AnyProblem::IsInexact.
  double InnerTolerance(double loose, double tight) const {
    if (progress <= 0) return loose;
    return progress >= 1 ? tight : loose * std::pow(tight / loose, progress);
  }
};

// One step of a batch of independent steps: *out = Phi(*u).
struct StepTask {
  StepInterval interval;
  const State* u = nullptr;
  State* out = nullptr;
};

// The adjoint of one step: *out = (d Phi / d u)^T(*u) *lambda.
template <typename S>
struct AdjointTask {
  StepInterval interval;
  const S* u = nullptr;
  const S* lambda = nullptr;
  S* out = nullptr;
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

// StateOperations<S>::Norms where it is given, else HostNorms<S>.
template <typename S>
struct NormsOf {
  using type = HostNorms<S>;
};
template <typename S>
requires requires { typename StateOperations<S>::Norms; }
struct NormsOf<S> {
  using type = typename StateOperations<S>::Norms;
};

template <typename S>
class Problem : public AnyProblem {
 public:
  using Operations = StateOperations<S>;

  // A state to write into; its content does not matter, its shape does. To be defined for states whose type
  // has no shape (std::vector).
  virtual S Make(int level);
  virtual void Initialize(std::int64_t point, double t, S& u) = 0;
  virtual void Step(const StepInterval& interval, const S& u, S& out) = 0;
  // (d Phi / d u)^T at `u`, applied to `lambda`: what AdjointProblem (mgrit/adjoint.h) steps with.
  virtual void StepAdjoint(const StepInterval& interval, const S& u, const S& lambda, S& out);
  // Equations of the problem's own, where HasEquation.
  virtual void EvaluateEquation(const StepInterval& interval, const S& u_start, const S& u_stop, S& out);
  virtual void StepWithRightHandSide(const StepInterval& interval, const S& u, const S& g, S& out);
  // (d Phi / d u) at `u`, applied to `w`, and the directions to begin with: for the delta correction.
  virtual void StepTangent(const StepInterval& interval, const S& u, const S& w, S& out);
  virtual void InitializeDirection(int index, S& w);
  // All tasks are independent; called if PrefersMany. The results must be the bits that StepAdjoint gives.
  virtual void StepAdjointMany(absl::Span<const AdjointTask<S>> tasks);
  // Spatial coarsening, both linear. Restriction serves states and residuals alike.
  virtual void Restrict(int fine_level, const S& fine, S& coarse);
  virtual void Interpolate(int fine_level, const S& coarse, S& fine);
  // The same for an adjoint solve of a problem that coarsens space; there is no default. With the transposes of
  // Interpolate and of Restrict, in this order, the cycle of the adjoint solve is the transpose of the cycle.
  virtual void RestrictAdjoint(int fine_level, const S& fine, S& coarse);
  virtual void InterpolateAdjoint(int fine_level, const S& coarse, S& fine);

  // The norm of a residual at one point in time, for problems with a norm of their own (scaled by mesh sizes,
  // of some components alone). Without a value: the 2-norm of the state. Taken at once, unlike the 2-norm of
  // states on a device.
  virtual std::optional<double> ResidualNorm(const S& /*residual*/) { return std::nullopt; }

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
  void PutNorm(std::int64_t slot, const State& x) final {
    const std::optional<double> own = ResidualNorm(Value<S>(x));
    if (own) {
      own_norms_.emplace_back(slot, *own);
    } else {
      norms_.Put(slot, Value<S>(x));
    }
  }
  void TakeNorms(absl::Span<double> squares) final {
    norms_.Take(squares);
    for (const auto& [slot, norm] : own_norms_) squares[static_cast<std::size_t>(slot)] = norm * norm;
    own_norms_.clear();
  }
  StateMemory Memory(State& x) final {
    if constexpr (requires { Operations::Memory(Value<S>(x)); }) return Operations::Memory(Value<S>(x));
    return {};
  }
  std::int64_t PackedBytes(const State& x) final { return Operations::PackedBytes(Value<S>(x)); }
  void Pack(const State& x, absl::Span<std::byte> bytes) final { Operations::Pack(Value<S>(x), bytes); }
  void Unpack(absl::Span<const std::byte> bytes, State& x) final { Operations::Unpack(bytes, Value<S>(x)); }
  void EvaluateEquation(const StepInterval& interval, const State& u_start, const State& u_stop,
                        State& out) final {
    EvaluateEquation(interval, Value<S>(u_start), Value<S>(u_stop), Value<S>(out));
  }
  void StepWithRightHandSide(const StepInterval& interval, const State& u, const State& g, State& out) final {
    StepWithRightHandSide(interval, Value<S>(u), Value<S>(g), Value<S>(out));
  }
  void StepTangent(const StepInterval& interval, const State& u, const State& w, State& out) final {
    StepTangent(interval, Value<S>(u), Value<S>(w), Value<S>(out));
  }
  void InitializeDirection(int index, State& w) final { InitializeDirection(index, Value<S>(w)); }
  double Dot(const State& x, const State& y) final {
    if constexpr (requires { Operations::Dot(Value<S>(x), Value<S>(y)); }) {
      return Operations::Dot(Value<S>(x), Value<S>(y));
    } else {
      MissingOperation("StateOperations::Dot");
    }
  }
  void Restrict(int fine_level, const State& fine, State& coarse) final {
    Restrict(fine_level, Value<S>(fine), Value<S>(coarse));
  }
  void Interpolate(int fine_level, const State& coarse, State& fine) final {
    Interpolate(fine_level, Value<S>(coarse), Value<S>(fine));
  }

 private:
  typename NormsOf<S>::type norms_;
  std::vector<std::pair<std::int64_t, double>> own_norms_;  // by slot
};

template <typename S>
S Problem<S>::Make(int) {
  if constexpr (!kTypeHasShape<S>) MissingOperation("Make, the shape of a state");
  return S{};
}
template <typename S>
void Problem<S>::StepAdjointMany(absl::Span<const AdjointTask<S>> tasks) {
  for (const AdjointTask<S>& task : tasks) StepAdjoint(task.interval, *task.u, *task.lambda, *task.out);
}
template <typename S>
void Problem<S>::StepAdjoint(const StepInterval&, const S&, const S&, S&) {
  MissingOperation("StepAdjoint");
}
template <typename S>
void Problem<S>::EvaluateEquation(const StepInterval&, const S&, const S&, S&) {
  MissingOperation("EvaluateEquation");
}
template <typename S>
void Problem<S>::StepWithRightHandSide(const StepInterval&, const S&, const S&, S&) {
  MissingOperation("StepWithRightHandSide");
}
template <typename S>
void Problem<S>::StepTangent(const StepInterval&, const S&, const S&, S&) {
  MissingOperation("StepTangent");
}
template <typename S>
void Problem<S>::InitializeDirection(int, S&) {
  MissingOperation("InitializeDirection");
}
template <typename S>
void Problem<S>::Restrict(int, const S&, S&) {
  MissingOperation("Restrict");
}
template <typename S>
void Problem<S>::Interpolate(int, const S&, S&) {
  MissingOperation("Interpolate");
}

template <typename S>
void Problem<S>::RestrictAdjoint(int, const S&, S&) {
  MissingOperation("RestrictAdjoint (the transpose of Interpolate)");
}
template <typename S>
void Problem<S>::InterpolateAdjoint(int, const S&, S&) {
  MissingOperation("InterpolateAdjoint (the transpose of Restrict)");
}

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_PROBLEM_H_
