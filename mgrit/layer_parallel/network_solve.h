// One forward solve of a network and the adjoint solves at its states, with their memory. Private to
// LayerParallel.
#ifndef PLAIT_MGRIT_LAYER_PARALLEL_NETWORK_SOLVE_H_
#define PLAIT_MGRIT_LAYER_PARALLEL_NETWORK_SOLVE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "mgrit/adjoint.h"
#include "mgrit/layer_parallel/layer_parallel.h"
#include "mgrit/layer_parallel/tensor_state.h"
#include "mgrit/layer_parallel/tensor_step.h"

namespace plait::mgrit {

// The network as a time-stepping problem.
class NetworkProblem final : public Problem<at::Tensor> {
 public:
  NetworkProblem(TensorStep& step, const at::Tensor& u_0) : step_(step), u_0_(u_0) {}

  void set_input(const at::Tensor& u_0) { u_0_ = u_0; }
  // False: no step is final, because the solve has diverged and will be repeated.
  void set_final(bool final) { final_ = final; }
  const at::Tensor& input() const { return u_0_; }
  at::Tensor Make(int level) override;
  // The input is also the initial guess of every layer.
  void Initialize(std::int64_t point, double t, at::Tensor& u) override;
  void Step(const StepInterval& interval, const at::Tensor& u, at::Tensor& out) override;
  void StepMany(absl::Span<const StepTask> tasks) override;
  bool PrefersMany() const override { return step_.PrefersMany(); }
  void StepAdjoint(const StepInterval& interval, const at::Tensor& u, const at::Tensor& lambda,
                   at::Tensor& out) override;

 private:
  TensorStep& step_;
  at::Tensor u_0_;
  bool final_ = true;
};

class NetworkSolve {
 public:
  // Collective. For states like u_0; `recorded`: an adjoint may follow. `step` must outlive the solve.
  NetworkSolve(TensorStep& step, const TimeGrid& time, const LayerParallelOptions& options,
               const comm::Communicator& communicator, const Partition& partition, const at::Tensor& u_0,
               bool recorded);

  // Whether this solve can be reused for an input like u_0.
  bool Fits(const at::Tensor& u_0, bool recorded) const;
  bool recorded() const { return tape_ != nullptr; }
  void set_iterations(int forward, int backward);
  // Whether parallel solves continue the previous ones by one iteration instead of starting anew.
  void set_continues(bool continues) { continues_ = continues; }
  // Collective. u_0: contiguous, detached.
  Solution Forward(const at::Tensor& u_0, const models::BlockContext& context, Propagation propagation);
  // Collective. lambda: dJ/du_N, contiguous. At the states of the last Forward; may be called repeatedly.
  Solution Adjoint(const at::Tensor& lambda, Propagation propagation);
  // No adjoint will follow.
  void Clear();

  // u and dJ/du at an own point.
  const at::Tensor& StateAt(std::int64_t point) const { return forward_.state<at::Tensor>(point); }
  const at::Tensor& AdjointAt(std::int64_t point) const {
    return backward_->state<at::Tensor>(adjoint_.PointOf(point));
  }
  // Steps [first, last) of level 0, marked final.
  std::vector<StepInterval> FineSteps(std::int64_t first, std::int64_t last) const;

 private:
  Solution Solve(Solver& solver, Propagation propagation) const;

  TensorStep& step_;
  NetworkProblem problem_;
  Solver forward_;
  AdjointProblem<at::Tensor> adjoint_;
  std::unique_ptr<Solver> backward_;  // null unless recorded, as is the tape
  std::unique_ptr<TensorStep::Tape> tape_;
  bool continues_ = false;
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_LAYER_PARALLEL_NETWORK_SOLVE_H_
