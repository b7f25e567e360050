// The base class of time-stepping problems: a step and a few operations on states.
//
//   struct Decay : mgrit::Problem<double> {
//     void Initialize(std::int64_t point, double t, double& u) override { u = point == 0 ? 1.0 : 0.0; }
//     void Step(const mgrit::StepInterval& s, const double& u, double& out) override { out = u / (1 + s.dt()); }
//   };
//
// A state is any type S with StateOperations<S> (mgrit/state.h): double, std::vector<double>, std::array,
// at::Tensor (mgrit/layer_parallel/tensor_state.h). mgrit/testing/problem_conformance.h checks your own problem.
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
#include "mgrit/any_problem.h"
#include "mgrit/state.h"
#include "mgrit/step_interval.h"

namespace plait::mgrit {

// The adjoint of one step: *out = (d Phi / d u)^T(*u) *lambda.
template <typename S>
struct AdjointTask {
  StepInterval interval;
  const S* u = nullptr;
  const S* lambda = nullptr;
  S* out = nullptr;
};

// StateOperations<S>::Norms if it is defined, else HostNorms<S>.
template <typename S>
struct NormsOf {
  using type = HostNorms<S>;
};
template <typename S>
requires requires { typename StateOperations<S>::Norms; }
struct NormsOf<S> {
  using type = typename StateOperations<S>::Norms;
};

// Every problem defines Initialize and Step. The other operations are needed by some solves only: the program ends if a
// solve needs one that is not defined. HasEquation, StepMany with PrefersMany, IsInexact and CoarsensSpace may be
// overridden as well (mgrit/any_problem.h).
template <typename S>
class Problem : public AnyProblem {
 public:
  using Operations = StateOperations<S>;

  // Returns a state of the shape of `level`, with any values. Must be defined for types without a fixed shape
  // (std::vector).
  virtual S Make(int /*level*/) {
    if constexpr (!kTypeHasShape<S>) MissingOperation("Make, the shape of a state");
    return S{};
  }
  // The initial condition at fine point 0, the initial guess at all others; `t` is the time of `point`.
  virtual void Initialize(std::int64_t point, double t, S& u) = 0;
  // out = Phi(u) over `interval`. Deterministic: the same arguments give the same bits.
  virtual void Step(const StepInterval& interval, const S& u, S& out) = 0;
  // (d Phi / d u)^T at `u`, applied to `lambda`: what AdjointProblem (mgrit/adjoint.h) steps with.
  virtual void StepAdjoint(const StepInterval& /*interval*/, const S& /*u*/, const S& /*lambda*/,
                           S& /*out*/) {
    MissingOperation("StepAdjoint");
  }
  // The problem's own equation, if HasEquation: out = A(u_stop, u_start), and the solution `out` of A(out, u) = g.
  virtual void EvaluateEquation(const StepInterval& /*interval*/, const S& /*u_start*/, const S& /*u_stop*/,
                                S& /*out*/) {
    MissingOperation("EvaluateEquation");
  }
  virtual void StepWithRightHandSide(const StepInterval& /*interval*/, const S& /*u*/, const S& /*g*/,
                                     S& /*out*/) {
    MissingOperation("StepWithRightHandSide");
  }
  // For the delta correction: (d Phi / d u) at `u`, applied to `w`, and the initial directions.
  virtual void StepTangent(const StepInterval& /*interval*/, const S& /*u*/, const S& /*w*/, S& /*out*/) {
    MissingOperation("StepTangent");
  }
  virtual void InitializeDirection(int /*index*/, S& /*w*/) { MissingOperation("InitializeDirection"); }
  // A batch of independent tasks; called if PrefersMany. Results must be bitwise those of StepAdjoint.
  virtual void StepAdjointMany(absl::Span<const AdjointTask<S>> tasks) {
    for (const AdjointTask<S>& task : tasks) StepAdjoint(task.interval, *task.u, *task.lambda, *task.out);
  }
  // Spatial coarsening between fine_level and fine_level + 1; both are linear. Restrict is applied to states and to
  // residuals.
  virtual void Restrict(int /*fine_level*/, const S& /*fine*/, S& /*coarse*/) {
    MissingOperation("Restrict");
  }
  virtual void Interpolate(int /*fine_level*/, const S& /*coarse*/, S& /*fine*/) {
    MissingOperation("Interpolate");
  }
  // Transfers of the adjoint solve of a problem that coarsens space; there is no default. If they are the transposes
  // of Interpolate and of Restrict, in this order, the adjoint cycle is the transpose of the forward cycle.
  virtual void RestrictAdjoint(int /*fine_level*/, const S& /*fine*/, S& /*coarse*/) {
    MissingOperation("RestrictAdjoint (the transpose of Interpolate)");
  }
  virtual void InterpolateAdjoint(int /*fine_level*/, const S& /*coarse*/, S& /*fine*/) {
    MissingOperation("InterpolateAdjoint (the transpose of Restrict)");
  }

  // The norm of a residual at one point in time, for example scaled by mesh sizes or of some components only.
  // nullopt: the 2-norm of the state. Evaluated immediately, whereas 2-norms of states on a GPU are read once per
  // iteration.
  virtual std::optional<double> ResidualNorm(const S& /*residual*/) { return std::nullopt; }

  // AnyProblem, in terms of the above.
  std::unique_ptr<State> NewState(int level) final { return std::make_unique<StateOf<S>>(Make(level)); }
  void Initialize(std::int64_t point, double t, State& u) final { Initialize(point, t, Value<S>(u)); }
  void Step(const StepInterval& interval, const State& u, State& out) final {
    Step(interval, Value<S>(u), Value<S>(out));
  }
  void Copy(const State& x, State& y) final { Operations::Copy(Value<S>(x), Value<S>(y)); }
  void Combine(double alpha, const State& x, double beta, State& y) final {
    Operations::Combine(alpha, Value<S>(x), beta, Value<S>(y));
  }
  // x - x is 0 where x is finite, else NaN. Norms: read as the state's type reads them.
  bool IsFinite(const State& x) final {
    S difference = Make(0);
    Operations::Copy(Value<S>(x), difference);
    Operations::Combine(-1.0, Value<S>(x), 1.0, difference);
    typename NormsOf<S>::type norms;
    norms.Put(0, difference);
    double square = 0;
    norms.Take(absl::MakeSpan(&square, 1));
    return std::isfinite(square);
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

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_PROBLEM_H_
