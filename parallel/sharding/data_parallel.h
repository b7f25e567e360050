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
// (flat_layout.h); large parameters of root units, and of blocks unless parameters are sharded, have buffers of their
// own (part_bytes). Along a unit's shard axis gradients are reduce-scattered, so that each rank gets the sum of its
// shard; along its replicate axis shards are all-reduced; the optimizer updates the shard; then parameters are
// all-gathered. The strategy only decides what a rank keeps in between (strategy.h). Bytes sent per step and rank, for
// N ranks along the shard axis and P bytes of parameters: reduce-scatter P (N-1)/N, all-gather P (N-1)/N and, for fsdp
// with reshard_after_forward, once more for all blocks but the last; along a replicate axis of R ranks all-reduce
// 2 P/N (R-1)/R. For float32 AdamW a rank holds, per parameter: ddp 16 bytes, zero1 8 + 8/N, zero2 4 + 12/N,
// fsdp 16/N, and the unsharded units.
//
// A unit is unsharded while it is held. Run holds a block for its forward; its backward holds it again, from
// the arrival of its output's gradient until its last gradient. Forward holds the root units until the
// backward of its result has ended, or until the next AllGatherParameters. Holds are counted: several micro-batches in
// flight, a block that is used twice, two forwards before a backward, and an evaluation between a forward and its
// backward all work. After an optimizer step the backward of an earlier forward is an error, because its parameters
// have changed.
//
// Models stay ordinary modules; their parameters become views of the flat buffers, in compute_type, and have
// no .grad() between steps: see shards(). Reading a parameter while it is sharded throws a c10::Error that
// names its unit. All ranks along the data axes make the same calls in the same order, with the same units; ranks
// that differ along other axes (pipeline stages, layer-parallel parts) may have other units. Calls are collective
// unless marked local. Not thread-safe.
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
  // fsdp: a block is resharded after its forward and gathered again for its backward; else it stays unsharded.
  bool reshard_after_forward = true;
  // Overlaps communication with computation: the next block is gathered ahead, and the gradients of one unit are
  // reduced while those of the next are computed. False: at most one block is unsharded at a time.
  bool prefetch = true;
  // Type of parameters and activations. Master parameters, gradient sums and moments keep the type of the units'
  // parameters. Undefined: the same type for all.
  at::ScalarType compute_type = at::ScalarType::Undefined;
  // Gradients and their norm are bitwise identical for any numbers of ranks along the units' axes, which must be powers
  // of two, provided that the micro-batches consist of the same samples in the same order: sums are associated by a
  // fixed tree over the micro-batches (leaf_sum.h; docs/decisions/017-reproducible-sums-have-fixed-leaves.md). On CPU.
  bool reproducible = false;
  // Where parameters on the meta device are materialized.
  at::Device device = at::kCPU;
  // Parameters of at least this many bytes have flat buffers of their own, in root units and, unless the strategy
  // shards parameters, in blocks: their gradients are reduced as soon as they are complete, in the memory in which
  // autograd made them, without a copy. For smaller ones a copy costs less than separate collectives.
  std::int64_t part_bytes = std::int64_t{1} << 20;
  // Offloads masters between steps to a file or to the host (parallel/offload/state_store.h); those of one unit are in
  // memory while a step or a checkpoint visits them. fsdp then keeps shards in compute_type for its all-gathers.
  // Masters of compute_type are the parameters themselves, and are not offloaded unless offloads_parameters. `device`
  // is set by the engine.
  StateStoreOptions masters_offload = {};
  // fsdp: no parameters stay in memory between uses, on one rank too: a unit's shard is read from masters_offload
  // before each all-gather, the next one ahead. All-gathers then start from masters, whatever compute_type is.
  bool offloads_parameters = false;
};

// Sets the parameters of unit `unit`, which are allocated and unsharded, to their initial values.
using InitializeUnit = std::function<void(std::size_t unit)>;

class DataParallel {
 public:
  // Collective over the mesh. Broadcasts initial values from rank 0 of every axis that replicates or shards them, one
  // unit at a time. Parameters on the meta device are allocated one unit at a time and get their values from
  // `initialize`, which is called for every unit in order, on all ranks; no rank then ever has more than its shards and
  // one unit. INVALID_ARGUMENT, the same on all ranks, if units differ along an axis that replicates or shards them, or
  // options differ (the message names the first difference), no parameter is trained, a trained parameter is not a
  // leaf that requires gradients, a frozen one requires gradients, a tensor is listed twice, types or devices are
  // mixed, a parameter is on the meta device and there is no `initialize`, ddp has a shard axis of several ranks,
  // offloads_parameters is set without fsdp or without masters_offload, or reproducible is set on a GPU or with an axis
  // whose size is not a power of two. Errors of StateStore::Create on any rank are returned on all ranks.
  static absl::StatusOr<std::unique_ptr<DataParallel>> Create(const comm::DeviceMesh& mesh,
                                                              std::vector<models::ParameterUnit> units,
                                                              const DataParallelOptions& options,
                                                              const InitializeUnit& initialize = {});
  // Does not communicate: call WaitForParameters or VisitUnsharded after the last AllGatherParameters.
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  // Calls `forward` of block `block`, or of the `count` blocks from `block` on (a layer-parallel solve), with their
  // parameters unsharded, and returns its result. Recorded by autograd if grad mode is enabled.
  models::BlockState Run(std::size_t block, const models::BlockForward& forward,
                         const models::BlockState& input) {
    return Run(block, 1, forward, input);
  }
  models::BlockState Run(std::size_t block, std::size_t count, const models::BlockForward& forward,
                         const models::BlockState& input);

  // Calls `forward` with the root units unsharded and returns its result: a loss, or the output of a pipeline stage.
  // May be called again before the backward of the first result.
  at::Tensor Forward(const std::function<at::Tensor()>& forward);

  // Local. Announces the blocks that run now, forward or backward, and the block that runs after them, which is then
  // prefetched, or stays unsharded if it is one of them. For ranks that have several stages or several micro-batches
  // in flight. Until the first call the engine assumes that all blocks run forward and then backward.
  struct StageBlocks {
    std::size_t first = 0, count = 0;
    std::ptrdiff_t following = -1;  // negative: none in this step
  };
  void BeginStage(const StageBlocks& stage);

  // Keeps the blocks and the root units unsharded until the result is released, which must be before the next optimizer
  // step: for a backward in several parts whose later parts read parameters too.
  std::shared_ptr<const void> Hold(std::size_t block, std::size_t count);

  struct MicroBatch {
    // The last of a step: the gradients of all its micro-batches are reduced now.
    bool last = true;
    // zero2 and fsdp: reduces every micro-batch separately; ranks keep only shards of the sum. Otherwise every
    // rank accumulates unsharded gradients, which are reduced with the last micro-batch.
    // Not with DataParallelOptions::reproducible.
    bool reduce_every_micro_batch = false;
    // reproducible: its index among the rank's micro-batches, whose number must be a power of two, in the order of
    // samples. Several calls may share one if they are of stages with different parameters.
    int leaf = 0;
  };
  // Calls `backward`, which computes gradients: by autograd (loss.backward(), a stage's output with the gradient of its
  // output) or by AddGradient. Gradients are summed, not averaged, over ranks and micro-batches: each loss must be its
  // part of the loss of the whole batch, so parts need not be equal. After the last micro-batch the next call must be
  // an optimizer step (AllGatherParameters); calling Backward instead is a programming error. An exception from
  // `backward` is passed on; the engine cannot be used after it.
  void Backward(const std::function<void()>& backward, const MicroBatch& micro_batch = {true, false, 0});
  void Backward(const at::Tensor& loss, const MicroBatch& micro_batch = {true, false, 0});
  // Local. Adds a gradient that autograd did not compute, of the parameter's shape. Call within Backward's function.
  void AddGradient(const at::Tensor& parameter, const at::Tensor& gradient);

  // All-reduces partial gradients (models::Placement::partial) along their axes, once per step; further calls do
  // nothing. Optimizers call it before they read gradients. Not part of Backward, after which a pipeline stage may
  // still have to send what another stage is waiting for.
  void SumPartialGradients();
  // The 2-norm of all gradients of the mesh; each element counts once, whatever axes shard or replicate it. Collective
  // over the mesh. Call after the last Backward; calls SumPartialGradients.
  double GradientNorm();

  // Local. In the order of units and of their parts. An optimizer changes masters and then calls AllGatherParameters.
  const std::vector<Shard>& shards() const;
  // Local. Frozen parameters and buffers, which every rank has in full.
  const std::vector<ReplicatedTensor>& replicated_tensors() const;
  // Local. Calls `visit` with the master of shards()[shard], valid during the call (and after it if
  // masters_resident()). `changes`: writes to it are kept; first waits for the unit's all-gather in flight. When shards
  // are visited in order, the next one is read ahead. Returns the store's error or the visitor's.
  using MasterVisitor = std::function<absl::Status(const at::Tensor& master)>;
  absl::Status VisitMaster(std::size_t shard, bool changes, const MasterVisitor& visit) const;
  bool masters_resident() const;
  at::TensorOptions master_options() const;
  // Local. The first error of reading a shard from its store; all-gathers then had NaN in its place. The next optimizer
  // step reports it on all ranks; check it if none follows (evaluation, VisitUnsharded).
  const absl::Status& status() const;

  // Updates parameters from their masters: starts the all-gathers that the next Forward waits for. Discards gradients,
  // and broadcasts buffers from rank 0 of the data axes.
  void AllGatherParameters();
  // Waits for these all-gathers. Call before the program ends, or before reading parameters outside Forward.
  void WaitForParameters();
  // Calls `visit` for every unit in order, with its parameters unsharded, in compute_type: to export or compare models.
  void VisitUnsharded(const std::function<void(const models::ParameterUnit& unit)>& visit);

  // Local.
  const std::vector<models::ParameterUnit>& units() const;
  const comm::DeviceMesh& mesh() const;
  const DataParallelOptions& options() const;
  // Peak bytes of flat buffers (parameters, masters, gradients) on this rank since Create; for masters in a file, of
  // its buffers. Without moments, which belong to the optimizer.
  std::int64_t peak_bytes() const;
  // Offloaded shards that were not read ahead so far: their read started only when they were needed.
  std::int64_t unexpected_reads() const;

 private:
  class Engine;
  explicit DataParallel(std::shared_ptr<Engine> engine);
  std::shared_ptr<Engine> engine_;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_SHARDING_DATA_PARALLEL_H_
