// A network's steps, solved in parallel: the module that users see.
//
//   mgrit::LayerParallelOptions options;                      // levels, factors, iterations per direction
//   mgrit::LayerParallel net(comm, MakeResidualBlock, /*steps=*/64, /*final_time=*/2.0, options);
//   optim.add(net.Parameters());
//   at::Tensor u_end = net.Forward(u_0);                       // (batch, ...), recorded by autograd
//   Loss(u_end, target).backward();
//
// A block is a models::Block (models/block_model.h) whose natural form is u + dt F(u): coarse levels call it
// with a larger dt. The same arguments give the same result within a batch (randomness is fixed for that
// time). It is called many times per batch; in a recorded pass exactly one call of each step, on one rank, is
// final (BlockContext), at the final state of the step: running statistics move then. In a pass without
// gradients no call is final. Each rank moves the statistics of the steps that it owns; those of one block
// for all steps differ between ranks. An auxiliary loss, or a result of another shape or type, throws
// c10::Error.
//
// Blocks may be of several kinds and sizes, as long as the state keeps its shape. Where it changes, the row is cut: two
// networks, and between them the layer that changes it, which every rank computes; autograd goes through all three.
//
// Collective: every rank of the communicator calls Forward (and backward) with the same u_0 and holds the
// same u_end and, for shared parameters, the same gradients, bitwise identical for any number of ranks (to rounding where
// relaxation takes blocks together, models/stackable_block.h: how many depends on the ranks); work and states are
// distributed over the steps. With parameters per step, each rank holds, and gets gradients
// of, those of its own steps.
//
// Each recorded Forward keeps its states until its graph has gone: several may wait for their backward, in
// any order, with others in between. (Options::keep_previous_states goes on from the pass of this shape whose
// graph went last.) Parameters that are changed in place before the backward, a second backward without
// retain_graph, and gradients of gradients (create_graph) throw c10::Error.
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

// The hierarchies of both directions have the same levels and factors; all else may differ.
struct LayerParallelOptions {
  Options forward;
  Options backward;
  // Of blocks: the steps whose activations are not kept. Each evaluation of such a step's adjoint, on any level, calls
  // its block once more (activation checkpoints: arXiv:1604.06174); the bits are the same. Empty: all are kept, from
  // the last forward evaluation to the end of the backward pass.
  std::function<bool(std::int64_t step)> recomputes = {};
};

// The settings of the published experiments: `forward_iterations` and one backward iteration, F-relaxation on
// the finest level, FCF- on the others, no first down-sweep.
LayerParallelOptions MakeLayerParallelOptions(int levels, int cfactor, int forward_iterations,
                                              int backward_iterations);

// How states travel from step to step: by multigrid on all ranks at once, or one after the other, rank by rank.
enum class Propagation { kParallel, kSerial };

class LayerParallel {
 public:
  // A block per step: `make_block(i)` is called for the own steps i, so that no rank holds the whole network.
  using BlockFactory = std::function<std::shared_ptr<models::Block>(std::int64_t step)>;
  // Parameters that blocks of several steps have in common, by name. Every rank holds all of them, whether
  // its own blocks use them or not, and gives the same names, shapes and types in the same order; their
  // gradients are summed over all steps and ranks.
  using TiedParameters = std::vector<std::pair<std::string, at::Tensor>>;

  // Collective. Throws c10::Error on all ranks if the options do not fit `steps` (Check says so beforehand), if
  // ranks name different tied parameters, or if blocks of two steps of a rank have a parameter that is not
  // tied, or blocks of two ranks: where two begin with the same values, make_block is also called for the other
  // rank's step, to see whether they are the same tensor. (Not seen: one whose elements all begin equal.)
  LayerParallel(comm::Communicator communicator, const BlockFactory& make_block, std::int64_t steps,
                double final_time, const LayerParallelOptions& options, const TiedParameters& tied = {});
  // One block for all steps: a recurrent net.
  LayerParallel(comm::Communicator communicator, std::shared_ptr<models::Block> shared_block,
                std::int64_t steps, double final_time, const LayerParallelOptions& options);
  // A step that brings its own kernels.
  LayerParallel(comm::Communicator communicator, std::shared_ptr<TensorStep> step, std::int64_t steps,
                double final_time, const LayerParallelOptions& options);
  ~LayerParallel();

  static absl::Status Check(const LayerParallelOptions& options, std::int64_t steps);

  // (batch, ...) -> (batch, ...). Without gradients (at::NoGradGuard) only the last point is made valid.
  // Blocks get `context` with dt, level, step and final of each call; what it refers to outlives the backward.
  // A solve whose residual is not finite is done again serially, its Solution says `diverged`. (Statistics of the
  // steps before the first C-point then move twice.)
  // `conditioning`: what ConditionedBlocks read besides their state (models/conditioned_block.h), the same tensors on
  // every rank. The gradients of those that require them are summed over steps and ranks as those of shared parameters
  // are, whose type and device they have; others (masks) may be of any. c10::Error for steps that take none.
  at::Tensor Forward(const at::Tensor& u_0, const models::BlockContext& context = {},
                     const std::vector<at::Tensor>& conditioning = {});
  // Leaves, tied ones first; see TensorStep::Parameters.
  std::vector<at::Tensor> Parameters() const;

  // How many of them are shared: TensorStep::SharedParameters.
  std::int64_t shared_parameters() const;
  // TensorStep::LinearisesAhead of its step.
  bool linearises_ahead() const;

  // Of the whole network.
  std::int64_t steps() const;
  // The own steps first_step() ... last_step() - 1.
  std::int64_t first_step() const;
  std::int64_t last_step() const;
  // What the last solves came to. The backward one is empty before the first backward.
  const Solution& last_forward() const;
  const Solution& last_backward() const;
  // Other levels, factors and iterations from the next Forward on, as CheckOptions allows. InvalidArgument where they do not fit the steps, or
  // where the ranks' own steps would be others; FailedPrecondition while a recorded pass waits for its backward; then
  // all stays as it is. Local; every rank gives the same.
  absl::Status SetOptions(const LayerParallelOptions& options);
  absl::Status CheckOptions(const LayerParallelOptions& options) const;
  // At least 1 each. Takes effect at the next Forward and its backward. Levels and factors stay as they are.
  void set_iterations(int forward, int backward);
  // Of the next Forward and its backward.
  void set_propagation(Propagation propagation);
  // Solves so far, of both directions, that were done again serially.
  std::int64_t diverged_solves() const;

  // Recorded passes from here on keep their states when their graph has gone: the memory of two solves each.
  void KeepPasses();
  // The next recorded passes go on from those kept, which ended in the order in which these begin, by one iteration
  // in both directions, from the same inputs or others of their shapes; afterwards passes are new ones again. The
  // difference of the gradients of a pass and its continuation estimates what the iterations of the former have left
  // of the way to the exact gradient: with errors that an iteration makes smaller by rho, to rho times that distance.
  void ContinueKeptPasses();

  // What this rank has done since the last reset, in all solves of both directions, and in gradients.
  WorkTimes work_times() const;
  void ResetWorkTimes();
  // Read before and behind each piece of work, in seconds, from the next one on. Empty: the host's steady clock. One that
  // waits for a GPU makes work_times the GPU's, and the work slower.
  void set_work_clock(std::function<double()> clock);

 private:
  class Engine;
  class Function;
  std::shared_ptr<Engine> engine_;
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_LAYER_PARALLEL_LAYER_PARALLEL_H_
