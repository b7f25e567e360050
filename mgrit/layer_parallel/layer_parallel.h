// Layer-parallel networks: solves the forward and backward pass through a row of blocks by MGRIT.
//
//   mgrit::LayerParallelOptions options;                      // levels, factors, iterations per direction
//   mgrit::LayerParallel net(comm, MakeResidualBlock, /*steps=*/64, /*final_time=*/2.0, options);
//   torch::optim::Adam adam(net.Parameters());
//   at::Tensor u_end = net.Forward(u_0);                       // (batch, ...), recorded by autograd
//   Loss(u_end, target).backward();
//
// A block is a models::Block (models/block_model.h) of the form u + dt F(u): coarse levels call it with a larger
// dt. It must be deterministic within a batch, and is called many times per batch. In a recorded pass exactly one
// call per step, on one rank, is final (BlockContext), at the final state of the step; running statistics are updated
// in it. In a pass without gradients no call is final. Each rank updates the statistics of its own steps, so those of
// a block shared by all steps differ between ranks. An auxiliary loss, or a result of another shape or type, throws
// c10::Error.
//
// Blocks may differ in kind and size as long as the state keeps its shape. Where the shape changes, use two networks
// and, between them, the layer that changes it, computed by every rank; autograd differentiates through all three.
//
// Collective: every rank of the communicator calls Forward (and backward) with the same u_0. All ranks get the same
// u_end and the same gradients of shared parameters, bitwise identical for any number of ranks (to rounding if
// relaxation batches blocks, models/stackable_block.h, since batch sizes depend on the number of ranks). Work and
// states are distributed over the steps. With parameters per step, each rank holds the parameters of its own steps
// only, and their gradients.
//
// Each recorded Forward keeps its states until its graph is freed, so several passes may wait for their backward, in
// any order. (Options::keep_previous_states starts from the states of the pass of this shape whose graph was freed
// last.) c10::Error: a parameter was modified in place before the backward, a second backward without retain_graph,
// gradients of gradients (create_graph).
#ifndef PLAIT_MGRIT_LAYER_PARALLEL_LAYER_PARALLEL_H_
#define PLAIT_MGRIT_LAYER_PARALLEL_LAYER_PARALLEL_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "comm/communicator.h"
#include "mgrit/layer_parallel/tensor_step.h"
#include "mgrit/layer_parallel/work_times.h"
#include "mgrit/options.h"
#include "mgrit/solver.h"
#include "models/block_model.h"

namespace plait::mgrit {

// Both directions need the same levels and factors; all other options may differ. `storage` and `final_relaxation` are
// set by LayerParallel.
struct LayerParallelOptions {
  Options forward;
  Options backward;
  // Activation checkpointing (arXiv:1604.06174): returns whether the activations of a step are dropped. Each evaluation
  // of its adjoint, on any level, then calls its block again; results are bitwise identical. Empty: activations of all
  // steps are kept, from the last forward evaluation to the end of the backward pass. For models::Block only; read by
  // the constructor, not by SetOptions.
  std::function<bool(std::int64_t step)> recomputes = {};
};

// Usual settings for training: V-cycles, F-relaxation on the finest level and FCF-relaxation on the others, and a
// skipped first down-cycle, with these numbers of iterations (no tolerance).
LayerParallelOptions MakeLayerParallelOptions(int levels, int cfactor, int forward_iterations,
                                              int backward_iterations);

// How a pass is computed: by multigrid on all ranks in parallel, or exactly, one step after another, rank by rank.
enum class Propagation { kParallel, kSerial };

class LayerParallel {
 public:
  // A block per step: `make_block(i)` is called for the rank's own steps i, so that no rank holds the whole network.
  using BlockFactory = std::function<std::shared_ptr<models::Block>(std::int64_t step)>;
  // Parameters that blocks of several steps share, by name. Every rank holds all of them, whether or not its own blocks
  // use them, and passes the same names, shapes and types in the same order. Their gradients are summed over all steps
  // and ranks.
  using TiedParameters = std::vector<std::pair<std::string, at::Tensor>>;

  // Collective. Throws c10::Error on all ranks if the options do not fit `steps` (see Check), ranks name different tied
  // parameters, or a parameter that is not tied belongs to blocks of several steps, on one rank or on two. To detect
  // the latter, make_block is also called for steps of other ranks whose parameters have the same initial values.
  // (Not detected: tensors whose elements are all equal.)
  LayerParallel(comm::Communicator communicator, const BlockFactory& make_block, std::int64_t steps,
                double final_time, const LayerParallelOptions& options, const TiedParameters& tied = {});
  // One block for all steps, as in a recurrent network. Collective; throws c10::Error if the options do not fit.
  LayerParallel(comm::Communicator communicator, std::shared_ptr<models::Block> shared_block,
                std::int64_t steps, double final_time, const LayerParallelOptions& options);
  // A step with its own kernels and adjoint. Collective; throws c10::Error if the options do not fit.
  LayerParallel(comm::Communicator communicator, std::shared_ptr<TensorStep> step, std::int64_t steps,
                double final_time, const LayerParallelOptions& options);
  ~LayerParallel();

  // Local. INVALID_ARGUMENT if the options do not fit `steps`, or the two directions differ in levels or factors.
  static absl::Status Check(const LayerParallelOptions& options, std::int64_t steps);

  // Collective. (batch, ...) -> (batch, ...), on every rank. Without gradients (at::NoGradGuard) the final relaxation
  // covers the last C-interval only. Blocks get `context`, with dt, level, step and final set for each call; what it
  // refers to must outlive the backward. A solve that diverges (Solution::diverged) is repeated serially; its Solution
  // is that of the repetition, but diverged instead of converged. (Running statistics of the steps before the first
  // C-point are then updated twice.)
  // `conditioning`: tensors that ConditionedBlocks read besides their state (models/conditioned_block.h), the same on
  // every rank. Those that require gradients must have the type and device of the shared parameters; their gradients
  // are summed over steps and ranks. Others (masks) may be of any type. c10::Error if the steps take no conditioning.
  at::Tensor Forward(const at::Tensor& u_0, const models::BlockContext& context = {},
                     const std::vector<at::Tensor>& conditioning = {});
  // Local. The leaves of this rank, shared or tied ones first; see TensorStep::Parameters.
  std::vector<at::Tensor> Parameters() const;

  // How many of them are shared: TensorStep::SharedParameters.
  std::int64_t shared_parameters() const;
  // TensorStep::LinearisesAhead of the step.
  bool linearises_ahead() const;

  // Number of steps of the whole network.
  std::int64_t steps() const;
  // This rank owns the steps first_step() ... last_step() - 1.
  std::int64_t first_step() const;
  std::int64_t last_step() const;
  // The outcome of the last solves. The backward one is empty before the first backward.
  const Solution& last_forward() const;
  const Solution& last_backward() const;
  // Changes levels, factors and iterations from the next Forward on. INVALID_ARGUMENT if they do not fit the steps or
  // would change which steps a rank owns; FAILED_PRECONDITION while a recorded pass waits for its backward. After an
  // error nothing has changed. CheckOptions returns the same without changing anything. Local; call it with the same
  // options on every rank.
  absl::Status SetOptions(const LayerParallelOptions& options);
  absl::Status CheckOptions(const LayerParallelOptions& options) const;
  // At least 1 each. Takes effect at the next Forward and its backward. Local; the same on every rank.
  void set_iterations(int forward, int backward);
  // Takes effect at once, for the next Forward and the next backward. Local; the same on every rank.
  void set_propagation(Propagation propagation);
  // Number of solves, of both directions, that were repeated serially.
  std::int64_t diverged_solves() const;

  // From now on, recorded passes keep their states after their graph is freed: the memory of two solves each.
  void KeepPasses();
  // The next recorded passes, in the order in which the kept ones were freed, continue them by one iteration in both
  // directions, from the same inputs or others of the same shape; later passes start anew. The difference of the
  // gradients of a pass and its continuation estimates the error of the former, to a relative error of rho if an
  // iteration reduces errors by the factor rho.
  void ContinueKeptPasses();

  // Work of this rank since the last reset: all solves of both directions, and gradients. Local.
  WorkTimes work_times() const;
  void ResetWorkTimes();
  // The clock, in seconds, that is read before and after each piece of work. Empty: the host's steady clock. A clock
  // that synchronizes with the GPU makes work_times measure GPU time, but slows the work down.
  void set_work_clock(std::function<double()> clock);

 private:
  class Engine;
  class Function;
  std::shared_ptr<Engine> engine_;
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_LAYER_PARALLEL_LAYER_PARALLEL_H_
