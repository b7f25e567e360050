// The two solves behind LayerParallel and the gradient between them. Private to LayerParallel.
#ifndef PLAIT_MGRIT_LAYER_PARALLEL_ENGINE_H_
#define PLAIT_MGRIT_LAYER_PARALLEL_ENGINE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "mgrit/adjoint.h"
#include "mgrit/layer_parallel/layer_parallel.h"
#include "mgrit/layer_parallel/tensor_state.h"
#include "mgrit/layer_parallel/tree_sum.h"

namespace plait::mgrit {

// The network as a time-stepping problem.
class NetworkProblem final : public Problem<at::Tensor> {
 public:
  explicit NetworkProblem(TensorStep& step) : step_(step) {}

  void set_input(const at::Tensor& u_0) { u_0_ = u_0; }
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
};

class LayerParallel::Engine {
 public:
  Engine(comm::Communicator communicator, std::shared_ptr<TensorStep> step, std::int64_t steps,
         double final_time, const LayerParallelOptions& options);

  // u_N on every rank, detached.
  at::Tensor Forward(const at::Tensor& u_0, bool differentiable);
  // From dJ/du_N: dJ/du_0 (undefined unless asked for), then dJ/dp for each of Parameters().
  std::vector<at::Tensor> Backward(const at::Tensor& lambda, bool wants_input_gradient);

  TensorStep& step() { return *step_; }
  std::int64_t first_step() const { return partition_.first_step(position_); }
  std::int64_t last_step() const { return partition_.last_step(position_); }
  const Solution& last_forward() const { return last_forward_; }
  const Solution& last_backward() const { return last_backward_; }
  void set_iterations(int forward, int backward);

 private:
  void PrepareSolvers(const at::Tensor& u_0, bool differentiable);
  const at::Tensor& StateAt(std::int64_t point) const { return forward_->state<at::Tensor>(point); }
  const at::Tensor& AdjointAt(std::int64_t point) const;
  std::vector<at::Tensor> SharedGradients();
  std::vector<at::Tensor> OwnGradients();
  std::vector<StepInterval> FineSteps(std::int64_t first, std::int64_t last) const;
  std::int64_t LeafBegin(std::int64_t leaf) const;

  comm::Communicator communicator_;
  std::shared_ptr<TensorStep> step_;
  TimeGrid time_;
  LayerParallelOptions options_;
  Partition partition_;
  int position_;
  NetworkProblem problem_;
  AdjointProblem<at::Tensor> adjoint_;
  std::unique_ptr<Solver> forward_;
  std::unique_ptr<Solver> backward_;
  bool differentiable_ = false;  // forward_ was made for an adjoint to follow
  at::TensorOptions state_options_;
  std::vector<std::int64_t> state_sizes_;
  std::unique_ptr<TreeSum> gradient_sum_;
  Solution last_forward_;
  Solution last_backward_;
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_LAYER_PARALLEL_ENGINE_H_
