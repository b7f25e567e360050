// Sharded data parallelism: one engine for DDP, ZeRO-1, ZeRO-2, ZeRO-3 (FSDP) and HSDP, on the data axes of
// any mesh.
//
//   const comm::DeviceMesh mesh = ...;  // pp=2,dp_replicate=2,dp_shard=4
//   PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<DataParallel> dp,
//                          DataParallel::Create(mesh, model.units(), {.strategy = Strategy::kFsdp}));
//   ShardedOptimizer optimizer(*dp, {.lr = 3e-4, .weight_decay = 0.1});
//   const auto run = [&](std::size_t block, const BlockState& input, const BlockContext& context) {
//     return dp->Run(block, [&](const BlockState& x) { return model.blocks()[block]->Forward(x, context); },
//                    input);
//   };
//   for (...) {
//     at::Tensor loss = dp->Forward([&] { return RunModel(model, batch, run).sum / count_of_all_ranks; });
//     dp->Backward(loss);
//     optimizer.Step({.clip_norm = 1});
//   }
//
// A model is a list of units (models/block_model.h), each a flat buffer that is communicated as a whole
// (flat_layout.h); large parameters of root units are buffers of their own, and those of blocks where
// parameters stay unsharded. Along a unit's shard axis gradients are reduce-scattered, so that each rank gets
// the sum of its shard; along its replicate axis shards are all-reduced; the optimizer steps the shard; then
// parameters are all-gathered. A strategy only decides what a rank keeps in between (strategy.h). Per step and
// rank, of N along the shard axis with P bytes of parameters: reduce-scatter P (N-1)/N, all-gather P (N-1)/N
// and, for fsdp with reshard_after_forward, once more of all blocks but the last; along the replicate axis
// of R ranks all-reduce 2 P/N (R-1)/R. For float32 AdamW a rank holds, per parameter: ddp 16 bytes,
// zero1 8 + 8/N, zero2 4 + 12/N, fsdp 16/N, and the unsharded units.
//
// A unit is unsharded while it is held. Run holds a block for its forward; its backward holds it again, from
// the arrival of its output's gradient until its last gradient. Forward holds the root units until the
// backward of its result has ended, or its graph is freed. Holds are counted: micro-batches in flight, a
// block that is used twice, two forwards before a backward and an evaluation between a forward and its
// backward need no care. After an optimizer step the backward of an earlier forward is an error, because the
// parameters that it was recorded with have changed.
//
// Models stay ordinary modules; their parameters become views of the flat buffers, in compute_type, and have
// no .grad() between steps: see shards(). Reading a parameter while it is sharded throws a c10::Error that
// names its unit. Every rank of an axis makes the same calls in the same order, with the same units; ranks
// that differ along other axes (pipeline stages, layer-parallel parts) may have others. Calls are collective
// unless they say local. Not thread-safe.
#ifndef PLAIT_PARALLEL_SHARDING_DATA_PARALLEL_H_
#define PLAIT_PARALLEL_SHARDING_DATA_PARALLEL_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm/device_mesh.h"
#include "models/block_model.h"
#include "parallel/offload/state_store.h"
#include "parallel/sharding/shard.h"
#include "parallel/sharding/strategy.h"

namespace plait::parallel {

struct DataParallelOptions {
  Strategy strategy = Strategy::kDdp;
  // fsdp: a block is resharded after its forward and gathered again for its backward; else it stays.
  bool reshard_after_forward = true;
  // Communication overlaps with computation: the next block is gathered meanwhile, and the gradients of one
  // unit are reduced while those of the next are computed. Off: a rank has one unit at a time.
  bool prefetch = true;
  // Type of parameters and activations; master parameters, gradient sums and moments keep the type that the
  // units' parameters have. Undefined: the same.
  at::ScalarType compute_type = at::ScalarType::Undefined;
  // The bits of gradients, and of their norm, do not depend on the numbers of ranks along the units' axes, which are
  // powers of two, as long as each rank and micro-batch has the same samples as some rank and micro-batch of the
  // other mesh: sums are associated by a fixed tree over these leaves (leaf_sum.h, docs/decisions/017). On CPU.
  bool reproducible = false;
  // Where parameters on the meta device are materialized.
  at::Device device = at::kCPU;
  // Parameters of at least this size are flat buffers of their own, in root units and, where the strategy keeps
  // parameters unsharded, in blocks: their gradients are reduced as soon as they are there, in the memory in
  // which autograd made them, without a copy. Of smaller ones the copy costs less than collectives of their own.
  std::int64_t part_bytes = std::int64_t{1} << 20;
  // Where masters live between steps: in a file or on the host (parallel/offload/state_store.h), those of one
  // unit are in memory while a step or a checkpoint visits them. fsdp then keeps shards in compute_type to
  // gather from. Masters of compute_type are the parameters, and stay unless offloads_parameters. The device
  // is the engine's.
  StateStoreOptions masters_offload = {};
  // fsdp: nothing of a block or a root unit is in memory between its uses, on one rank too: its shard is read
  // from masters_offload before each gather, the next one meanwhile. A gather reads masters, whatever
  // compute_type is.
  bool offloads_parameters = false;
};

// Sets the parameters of one unit, which have memory, to their initial values.
using InitializeUnit = std::function<void(std::size_t unit)>;

class DataParallel {
 public:
  // Broadcasts initial values from rank 0 of every axis that replicates or shards them, one unit at a time.
  // Parameters on the meta device get memory one unit at a time, and values from `initialize`, which is
  // called for every unit in order, on all ranks; no rank then ever has more than its shards and one unit.
  // INVALID_ARGUMENT, the same on all ranks of the mesh, where units differ along an axis that replicates or
  // shards them (first difference named), a trained parameter is not a leaf that requires gradients, a tensor
  // is listed twice, types or devices are mixed, a frozen parameter requires gradients, ddp is asked for
  // along a shard axis of several ranks, parameters are to be offloaded that the strategy keeps in memory, or
  // reproducible is asked for on a GPU or along an axis whose number of ranks is no power of two.
  // Errors of StateStore::Create of any rank, on all ranks.
  static absl::StatusOr<std::unique_ptr<DataParallel>> Create(const comm::DeviceMesh& mesh,
                                                              std::vector<models::ParameterUnit> units,
                                                              const DataParallelOptions& options,
                                                              const InitializeUnit& initialize = {});
  // Does not communicate: behind the last AllGatherParameters comes WaitForParameters or VisitUnsharded.
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  // `forward` of block `block`, or of the `count` blocks from `block` on (a layer-parallel solve), with their
  // parameters unsharded. Recorded by autograd if it is on.
  models::BlockState Run(std::size_t block, const models::BlockForward& forward,
                         const models::BlockState& input) {
    return Run(block, 1, forward, input);
  }
  models::BlockState Run(std::size_t block, std::size_t count, const models::BlockForward& forward,
                         const models::BlockState& input);

  // Calls `forward` with the root units unsharded. The result is what it gave: a loss, the output of a
  // pipeline stage. May be called again before the first result's backward.
  at::Tensor Forward(const std::function<at::Tensor()>& forward);

  // Local. The blocks that run now, forward or backward, and the one that runs behind them: gathered ahead in place of
  // their neighbour, and kept if it is one of them. For ranks that have several stages, or several micro-batches of
  // one. Until the first call all blocks run forward and then backward.
  struct StageBlocks {
    std::size_t first = 0, count = 0;
    std::ptrdiff_t following = -1;  // negative: none in this step
  };
  void BeginStage(const StageBlocks& stage);

  // Blocks and root units unsharded until the result is released, before the next optimizer step: for a backward
  // in several parts, of which the later ones read parameters too.
  std::shared_ptr<const void> Hold(std::size_t block, std::size_t count);

  struct MicroBatch {
    // Of a step: the gradients of all its micro-batches are reduced then.
    bool last = true;
    // zero2 and fsdp: every micro-batch is reduced at once and ranks keep shards of the sum. Otherwise every
    // rank adds up unsharded gradients, which are reduced with the last one.
    // Not with DataParallelOptions::reproducible.
    bool reduce_every_micro_batch = false;
    // reproducible: its number among the rank's micro-batches, a power of two of them, in the order of samples.
    // Several calls may share one, of stages with other parameters.
    int leaf = 0;
  };
  // Calls `backward`, in which gradients arise: by autograd (loss.backward(), a stage's output with the
  // gradient of its output) or by AddGradient. Gradients of all ranks and micro-batches are summed: losses
  // are parts of the loss of the whole batch, so that unequal parts are no special case. After the last
  // micro-batch the next call is an optimizer step (AllGatherParameters); calling Backward instead is a
  // programming error. An exception from `backward` passes through; the engine cannot be used after it.
  void Backward(const std::function<void()>& backward, const MicroBatch& micro_batch = {true, false, 0});
  void Backward(const at::Tensor& loss, const MicroBatch& micro_batch = {true, false, 0});
  // Local, within Backward's function. A gradient that autograd did not compute; of the parameter's shape.
  void AddGradient(const at::Tensor& parameter, const at::Tensor& gradient);

  // Sums partial gradients (models::Placement::partial) along their axes, once per step. An optimizer calls
  // it before it reads gradients. Not a part of Backward: another stage of a pipeline may still wait for what
  // is sent after it.
  void SumPartialGradients();
  // Root of the sum of squares of all gradients of the mesh: each element once, whatever axes shard or
  // replicate it. After the last Backward.
  double GradientNorm();

  // Local. In the order of units, and of parts in them. An optimizer changes masters and then calls
  // AllGatherParameters.
  const std::vector<Shard>& shards() const;
  // Local. Frozen parameters and buffers, which every rank has in full.
  const std::vector<ReplicatedTensor>& replicated_tensors() const;
  // Local. Calls `visit` with the master of shards()[shard], valid during the call (and after it if
  // masters_resident()). `changes`: what is written into it stays. Visits in the order of shards() are read
  // ahead.
  using MasterVisitor = std::function<absl::Status(const at::Tensor& master)>;
  absl::Status VisitMaster(std::size_t shard, bool changes, const MasterVisitor& visit) const;
  bool masters_resident() const;
  at::TensorOptions master_options() const;
  // Local. Why a gather had numbers that are no parameters: a shard could not be read from its place. A step
  // reports it on all ranks; ask where none follows (evaluation, VisitUnsharded).
  const absl::Status& status() const;

  // Parameters follow their masters: starts the all-gathers that the next Forward waits for. Gradients are
  // forgotten; buffers become those of rank 0 of the data axes.
  void AllGatherParameters();
  // Waits for these all-gathers: before a program ends, or reads parameters outside Forward.
  void WaitForParameters();
  // Calls `visit` for every unit, one after the other, with its parameters unsharded, in compute_type: to
  // export or to compare a model.
  void VisitUnsharded(const std::function<void(const models::ParameterUnit& unit)>& visit);

  // Local.
  const std::vector<models::ParameterUnit>& units() const;
  const comm::DeviceMesh& mesh() const;
  const DataParallelOptions& options() const;
  // Largest sum of bytes of flat buffers (parameters, masters, gradients) since Create began, on this rank;
  // of masters in a file the buffers. Moments are the optimizer's.
  std::int64_t peak_bytes() const;
  // Of shards in a file, so far: those whose read began only when they were wanted.
  std::int64_t unexpected_reads() const;

 private:
  class Engine;
  explicit DataParallel(std::shared_ptr<Engine> engine);
  std::shared_ptr<Engine> engine_;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_SHARDING_DATA_PARALLEL_H_
