// The adjoint of a solved problem: the same solver, run backward in time on vector-Jacobian products:
//   lambda_N = dJ/du_N,   lambda_i = (dPhi_i/du)^T(u_i) lambda_{i+1} + dJ/du_i.
//
//   mgrit::Solver forward(problem, time, options, comm);
//   forward.Solve();
//   const auto state_at = [&](std::int64_t i) -> const S& { return forward.state<S>(i); };
//   mgrit::AdjointProblem<S> adjoint(problem, time, state_at);
//   adjoint.set_terminal(dJ_du_end);
//   mgrit::Solver backward(adjoint, adjoint.time(), options, comm, forward.grid().partition().Mirrored());
//   backward.Solve();
//   backward.state<S>(adjoint.PointOf(0));   // dJ/du_0, on the rank that owns step 0
//
// Point j of the adjoint grid is point N - j of the forward grid. A coarse adjoint step uses the forward
// problem's coarse step over the same fine points, linearised at the fine state at its left end, which its
// rank owns. (Guenther, Ruthotto, Schroder, Cyr, Gauger: Layer-parallel training of deep residual neural
// networks, SIAM J. Math. Data Sci. 2, 2020, section 3.2.) Where the forward problem coarsens space, so does the
// adjoint, by RestrictAdjoint and InterpolateAdjoint, and a coarse step is linearised at the restricted state.
// A periodic problem, u_0 = u_N, has a periodic adjoint: dJ/du_0 is then the source of point 0, not the terminal value.
// The converged adjoint does not depend on these transfers: it is always that of the fine steps. If they are the
// transposes P^T and R^T of interpolation and restriction, the two-level adjoint cycle with F-relaxation is the
// transpose of the forward cycle, as an approximate inverse at the C-points, so both converge at the same rate.
// (With FCF-relaxation the two have the same factors in opposite order.)
#ifndef PLAIT_MGRIT_ADJOINT_H_
#define PLAIT_MGRIT_ADJOINT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "mgrit/grid.h"
#include "mgrit/problem.h"

namespace plait::mgrit {

// Returns the forward step that an adjoint step transposes, with exactly the times that the forward solve used.
// Its `index` is StepInterval::kNoIndex if the forward level has no such interval.
inline StepInterval ForwardInterval(const StepInterval& adjoint, const TimeGrid& forward_time) {
  StepInterval forward = adjoint;
  forward.fine_start = forward_time.steps - adjoint.fine_stop;
  forward.fine_stop = forward_time.steps - adjoint.fine_start;
  const std::int64_t stride = forward.fine_stop - forward.fine_start;
  forward.index = forward.fine_start % stride == 0 ? forward.fine_start / stride : StepInterval::kNoIndex;
  forward.t_start = forward_time.At(forward.fine_start);
  forward.t_stop = forward_time.At(forward.fine_stop);
  return forward;
}

template <typename S>
class AdjointProblem final : public Problem<S> {
 public:
  // The forward state u_i at a fine point that this rank owns.
  using StateAt = std::function<const S&(std::int64_t point)>;
  // dJ/du_i at a point 0 <= i < N of the forward grid, or null if the objective does not depend on u_i. Called
  // for the points whose step i this rank owns; dJ/du_N is set_terminal.
  using SourceAt = std::function<const S*(std::int64_t point)>;

  // `problem` must outlive this object. Local.
  AdjointProblem(Problem<S>& problem, TimeGrid forward_time, StateAt state_at)
      : problem_(problem), forward_time_(forward_time), state_at_(std::move(state_at)) {}

  void set_terminal(S lambda) {
    terminal_ = std::move(lambda);
    has_terminal_ = true;
  }
  void set_source(SourceAt source) { source_at_ = std::move(source); }
  TimeGrid time() const { return Reversed(forward_time_); }
  std::int64_t PointOf(std::int64_t forward_point) const { return forward_time_.steps - forward_point; }

  S Make(int level) override { return problem_.Make(level); }
  // The initial guess of lambda is zero at all points but the first; there, too, without a terminal value.
  void Initialize(std::int64_t point, double, S& lambda) override {
    if (!has_terminal_) {
      terminal_ = problem_.Make(0);
      problem_.Initialize(0, forward_time_.At(0), terminal_);  // of finite numbers
    }
    StateOperations<S>::Copy(terminal_, lambda);
    if (point > 0 || !has_terminal_) StateOperations<S>::Combine(0.0, terminal_, 0.0, lambda);
  }
  void Step(const StepInterval& interval, const S& lambda, S& out) override {
    const StepInterval forward = ForwardInterval(interval, forward_time_);
    S restricted{};
    problem_.StepAdjoint(forward, StateFor(forward, restricted), lambda, out);
    AddSource(forward, out);
  }
  void StepMany(absl::Span<const StepTask> tasks) override {
    std::vector<AdjointTask<S>> adjoint_tasks;
    std::vector<S> restricted(tasks.size());
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const StepInterval forward = ForwardInterval(tasks[i].interval, forward_time_);
      adjoint_tasks.push_back(
          {forward, &StateFor(forward, restricted[i]), &Value<S>(*tasks[i].u), &Value<S>(*tasks[i].out)});
    }
    problem_.StepAdjointMany(adjoint_tasks);
    for (const AdjointTask<S>& task : adjoint_tasks) AddSource(task.interval, *task.out);
  }
  bool PrefersMany() const override { return problem_.PrefersMany(); }
  bool IsInexact() const override { return problem_.IsInexact(); }
  std::string WhyNotPeriodic() const override {
    return has_terminal_
               ? "the adjoint has a terminal value, which would be lost; give it as the source of point 0"
               : "";
  }

  bool CoarsensSpace() const override { return problem_.CoarsensSpace(); }
  void Restrict(int fine_level, const S& fine, S& coarse) override {
    problem_.RestrictAdjoint(fine_level, fine, coarse);
  }
  void Interpolate(int fine_level, const S& coarse, S& fine) override {
    problem_.InterpolateAdjoint(fine_level, coarse, fine);
  }

 private:
  // The state at which a forward step is linearised; stored in `restricted` if its level coarsens space.
  const S& StateFor(const StepInterval& forward, S& restricted) {
    const S& fine = state_at_(forward.fine_start);
    if (!problem_.CoarsensSpace()) return fine;
    for (int level = 0; level < forward.level; ++level) {
      S coarse = problem_.Make(level + 1);
      problem_.Restrict(level, level == 0 ? fine : restricted, coarse);
      restricted = std::move(coarse);
    }
    return forward.level == 0 ? fine : restricted;
  }
  void AddSource(const StepInterval& forward, S& lambda) {
    if (forward.level > 0 || !source_at_) return;
    const S* source = source_at_(forward.fine_start);
    if (source != nullptr) StateOperations<S>::Combine(1.0, *source, 1.0, lambda);
  }

  Problem<S>& problem_;
  TimeGrid forward_time_;
  StateAt state_at_;
  SourceAt source_at_;
  S terminal_{};
  bool has_terminal_ = false;
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_ADJOINT_H_
