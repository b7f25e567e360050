// The solves and parameter gradients of LayerParallel. Private to LayerParallel.
#ifndef PLAIT_MGRIT_LAYER_PARALLEL_ENGINE_H_
#define PLAIT_MGRIT_LAYER_PARALLEL_ENGINE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "mgrit/layer_parallel/layer_parallel.h"
#include "mgrit/layer_parallel/network_solve.h"
#include "mgrit/layer_parallel/timed_step.h"
#include "mgrit/layer_parallel/tree_sum.h"

namespace plait::mgrit {

class LayerParallel::Engine {
 public:
  Engine(comm::Communicator communicator, std::shared_ptr<TensorStep> step, std::int64_t steps,
         double final_time, const LayerParallelOptions& options);

  // Takes a solve for states like u_0 from the pool; Return puts it back when no backward will follow.
  std::unique_ptr<NetworkSolve> Take(const at::Tensor& u_0, bool recorded);
  void Return(std::unique_ptr<NetworkSolve> solve);

  // Arguments of a pass besides its input.
  struct Surroundings {
    const models::BlockContext& context;
    const std::vector<at::Tensor>& conditioning;
  };
  // u_N on every rank, detached.
  at::Tensor Forward(NetworkSolve& solve, const at::Tensor& u_0, const Surroundings& surroundings);
  // From dJ/du_N: dJ/du_0 (undefined unless asked for), then dJ/dp for each of `leaves`, which are the conditioning
  // that requires gradients and the step's parameters at the time of Forward.
  std::vector<at::Tensor> Backward(NetworkSolve& solve, const at::Tensor& lambda, bool wants_input_gradient,
                                   const std::vector<at::Tensor>& leaves);

  TimedStep& step() { return *step_; }
  std::int64_t steps() const { return time_.steps; }
  std::int64_t first_step() const { return partition_.first_step(position_); }
  std::int64_t last_step() const { return partition_.last_step(position_); }
  const Solution& last_forward() const { return last_forward_; }
  const Solution& last_backward() const { return last_backward_; }
  absl::Status CheckOptions(const LayerParallelOptions& options) const;
  void SetOptions(const LayerParallelOptions& options);
  void set_iterations(int forward, int backward);
  void set_propagation(Propagation propagation) { propagation_ = propagation; }
  std::int64_t diverged_solves() const { return diverged_solves_; }
  void KeepPasses();
  void ContinueKeptPasses();

 private:
  std::unique_ptr<NetworkSolve> TakeKept(const at::Tensor& u_0);
  // Broadcasts a state from the rank that owns step `step`, which passes it as `mine`; null on other ranks.
  at::Tensor FromOwnerOf(std::int64_t step, const at::Tensor& like, const at::Tensor* mine);
  std::vector<at::Tensor> Gradients(NetworkSolve& solve, const std::vector<at::Tensor>& leaves);
  std::int64_t LeafBegin(std::int64_t leaf) const;
  // Sets this rank's position and assigns C-intervals to the leaves of the gradient sum.
  void Divide();

  comm::Communicator communicator_;
  std::shared_ptr<TimedStep> step_;
  TimeGrid time_;
  LayerParallelOptions options_;
  Propagation propagation_ = Propagation::kParallel;
  std::int64_t diverged_solves_ = 0;
  Partition partition_;
  int position_ = 0;
  std::vector<std::unique_ptr<NetworkSolve>> free_;  // the one returned last at the back
  int taken_ = 0;                                    // solves that have not been returned
  // Recorded passes in the order of their end, for ContinueKeptPasses.
  std::deque<std::unique_ptr<NetworkSolve>> kept_;
  bool keeps_ = false, continues_ = false;
  std::unique_ptr<TreeSum> gradient_sum_;
  std::int64_t first_leaf_ = 0;  // own C-intervals
  std::int64_t last_leaf_ = 0;
  Solution last_forward_;
  Solution last_backward_;
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_LAYER_PARALLEL_ENGINE_H_
