// A network's steps, solved in parallel: the module that users see.
//
//   mgrit::LayerParallelOptions options;                      // levels, factors, iterations per direction
//   mgrit::LayerParallel net(comm, MakeResidualBlock, /*steps=*/64, /*final_time=*/2.0, options);
//   optim.add(net.Parameters());
//   at::Tensor u_end = net.Forward(u_0);                       // (batch, ...), recorded by autograd
//   Loss(u_end, target).backward();
//
// Collective: every rank of the communicator calls Forward (and backward) with the same u_0 and holds the
// same u_end and, for shared parameters, the same gradients, bit for bit and for any number of ranks; work
// and states are distributed over the steps. With parameters per step, each rank holds, and gets gradients
// of, those of its own steps. While gradients are recorded, one Forward is followed by at most one backward
// before the next Forward.
#ifndef PLAIT_MGRIT_LAYER_PARALLEL_LAYER_PARALLEL_H_
#define PLAIT_MGRIT_LAYER_PARALLEL_LAYER_PARALLEL_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "comm/communicator.h"
#include "mgrit/layer_parallel/block.h"
#include "mgrit/layer_parallel/tensor_step.h"
#include "mgrit/options.h"
#include "mgrit/solver.h"

namespace plait::mgrit {

// The hierarchies of both directions have the same levels and factors; all else may differ.
struct LayerParallelOptions {
  Options forward;
  Options backward;
};

// The settings of the published experiments: `forward_iterations` and one backward iteration, F-relaxation on
// the finest level, FCF- on the others, no first down-sweep.
LayerParallelOptions MakeLayerParallelOptions(int levels, int cfactor, int forward_iterations,
                                              int backward_iterations);

class LayerParallel {
 public:
  // A block per step: `make_block(i)` is called for the own steps i alone, so that no rank holds the whole
  // network.
  using BlockFactory = std::function<std::shared_ptr<Block>(std::int64_t step)>;

  // Collective. The options fit `steps` (Check), else the program ends.
  LayerParallel(comm::Communicator communicator, const BlockFactory& make_block, std::int64_t steps,
                double final_time, const LayerParallelOptions& options);
  // One block for all steps: a recurrent net.
  LayerParallel(comm::Communicator communicator, std::shared_ptr<Block> shared_block, std::int64_t steps,
                double final_time, const LayerParallelOptions& options);
  // A step that brings its own kernels.
  LayerParallel(comm::Communicator communicator, std::shared_ptr<TensorStep> step, std::int64_t steps,
                double final_time, const LayerParallelOptions& options);
  ~LayerParallel();

  static absl::Status Check(const LayerParallelOptions& options, std::int64_t steps);

  // (batch, ...) -> (batch, ...). Without gradients (at::NoGradGuard) only the last point is made valid.
  at::Tensor Forward(const at::Tensor& u_0);
  // Leaves; see TensorStep::Parameters.
  std::vector<at::Tensor> Parameters() const;

  // The own steps first_step() ... last_step() - 1.
  std::int64_t first_step() const;
  std::int64_t last_step() const;
  // What the last solves came to. The backward one is empty before the first backward.
  const Solution& last_forward() const;
  const Solution& last_backward() const;
  // Takes effect at the next Forward. Levels and factors stay as they are.
  void set_iterations(int forward, int backward);

 private:
  class Engine;
  class Function;
  std::shared_ptr<Engine> engine_;
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_LAYER_PARALLEL_LAYER_PARALLEL_H_
