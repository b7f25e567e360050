// The adjoint of a solved problem is the same solver, run from right to left on vector-Jacobian products:
//   lambda_N = dJ/du_N,   lambda_i = (dPhi_i/du)^T(u_i) lambda_{i+1} + dJ/du_i.
//
//   mgrit::Solver forward(problem, time, options, comm);
//   forward.Solve();
//   mgrit::AdjointProblem<S> adjoint(problem, time, [&](std::int64_t i) -> const S& { return
//   forward.state<S>(i); }); adjoint.set_terminal(dJ_du_end); mgrit::Solver backward(adjoint, adjoint.time(),
//   options, comm, forward.grid().partition().Mirrored()); backward.Solve();
//   backward.state<S>(adjoint.PointOf(0))                              // dJ/du_0, on the rank that owns step
//   0
//
// Point j of the adjoint grid is point N - j of the forward grid. A coarse adjoint step uses the forward
// problem's coarse step over the same fine points, linearised at the fine state at its left end, which its
// rank owns. (Guenther, Ruthotto, Schroder, Cyr, Gauger: Layer-parallel training of deep residual neural
// networks, SIAM J. Math. Data Sci. 2, 2020, section 3.2.)
#ifndef PLAIT_MGRIT_ADJOINT_H_
#define PLAIT_MGRIT_ADJOINT_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "mgrit/grid.h"
#include "mgrit/problem.h"

namespace plait::mgrit {

// The time grid of the adjoint of a problem on `forward`.
inline TimeGrid Reversed(const TimeGrid& forward) {
  return {.start = -forward.stop, .stop = -forward.start, .steps = forward.steps};
}

// The forward step that an adjoint step transposes, with the very times that the forward solve used.
inline StepInterval ForwardInterval(const StepInterval& adjoint, const TimeGrid& forward_time) {
  StepInterval forward = adjoint;
  forward.fine_start = forward_time.steps - adjoint.fine_stop;
  forward.fine_stop = forward_time.steps - adjoint.fine_start;
  forward.index = forward.fine_start / (forward.fine_stop - forward.fine_start);
  forward.t_start = forward_time.At(forward.fine_start);
  forward.t_stop = forward_time.At(forward.fine_stop);
  return forward;
}

template <typename S>
class AdjointProblem final : public Problem<S> {
 public:
  // The forward state u_i at a fine point that this rank owns.
  using StateAt = std::function<const S&(std::int64_t point)>;
  // dJ/du_i at an inner point i of the forward grid, or null where the objective does not see u_i.
  using SourceAt = std::function<const S*(std::int64_t point)>;

  // `problem` outlives this one.
  AdjointProblem(Problem<S>& problem, TimeGrid forward_time, StateAt state_at)
      : problem_(problem), forward_time_(forward_time), state_at_(std::move(state_at)) {}

  void set_terminal(S lambda) { terminal_ = std::move(lambda); }
  void set_source(SourceAt source) { source_at_ = std::move(source); }
  TimeGrid time() const { return Reversed(forward_time_); }
  std::int64_t PointOf(std::int64_t forward_point) const { return forward_time_.steps - forward_point; }

  S Make(int level) override { return problem_.Make(level); }
  // Zero is the initial guess of lambda.
  void Initialize(std::int64_t point, double, S& lambda) override {
    StateOperations<S>::Copy(terminal_, lambda);
    if (point > 0) StateOperations<S>::Combine(0.0, terminal_, 0.0, lambda);
  }
  void Step(const StepInterval& interval, const S& lambda, S& out) override {
    const StepInterval forward = ForwardInterval(interval, forward_time_);
    problem_.StepAdjoint(forward, state_at_(forward.fine_start), lambda, out);
    if (interval.level > 0 || !source_at_) return;
    const S* source = source_at_(forward.fine_start);
    if (source != nullptr) StateOperations<S>::Combine(1.0, *source, 1.0, out);
  }

 private:
  Problem<S>& problem_;
  TimeGrid forward_time_;
  StateAt state_at_;
  SourceAt source_at_;
  S terminal_{};
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_ADJOINT_H_
