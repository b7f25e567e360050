// AdamW, Adam, SGD and Muon on the shards of a DataParallel, with clipping by the global norm.
//
//   ShardedOptimizer optimizer(*dp, {.kind = OptimizerKind::kAdamW, .lr = 6e-4, .weight_decay = 0.1});
//   dp->Backward(loss);
//   const StepResult result = optimizer.Step({.clip_norm = 1});
//
// Uses LibTorch's fused kernels, with one call per step for all parameters with weight decay and one for all others.
// AdamW: Loshchilov & Hutter, arXiv:1711.05101, algorithm 2; Adam: Kingma & Ba, arXiv:1412.6980, algorithm 1; SGD with
// momentum as torch.optim.SGD. Muon (muon.h) updates the matrices of blocks that have weight decay, of experts
// (experts, rows, columns) each matrix of the stack, AdamW all other
// parameters: a unit's momentum is all-gathered along the shard axis, and each rank orthogonalizes the matrices of
// which it has a part. Tensor-parallel layers would be orthogonalized part by part; the caller must reject them.
// Moments have the type of the masters. Moments, masters and parameters may be offloaded to a file
// (parallel/offload/state_store.h, DataParallelOptions): a step then processes one shard after another, with two of
// them in memory, with bitwise identical results.
#ifndef PLAIT_PARALLEL_OPTIM_SHARDED_OPTIMIZER_H_
#define PLAIT_PARALLEL_OPTIM_SHARDED_OPTIMIZER_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "parallel/offload/state_store.h"
#include "parallel/sharding/data_parallel.h"

namespace plait::parallel {

enum class OptimizerKind { kAdamW, kAdam, kSgd, kMuon };

struct ShardedOptimizerOptions {
  OptimizerKind kind = OptimizerKind::kAdamW;
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double momentum = 0;      // SGD; Nesterov momentum of Muon
  double weight_decay = 0;  // of parameters with ParameterSpec::decays; decoupled in AdamW and Muon, else L2
};

struct StepOptions {
  double clip_norm = 0;   // largest global gradient norm, as clip_grad_norm_; 0: no clipping
  double loss_scale = 1;  // gradients are divided by it first; positive
};

struct StepResult {
  double gradient_norm = 0;  // global, before clipping, without the loss scale
  bool skipped = false;      // the norm was not finite: no rank has changed anything
  // Errors of offloaded moments, masters or parameters, including reads for gathers before the step; the same on all
  // ranks. After an error the state is lost: resume from a checkpoint.
  absl::Status status = {};
};

class ShardedOptimizer {
 public:
  // Moments in memory; Muon needs masters in memory too. `dp` must outlive the optimizer. Local.
  ShardedOptimizer(DataParallel& dp, const ShardedOptimizerOptions& options);
  // Collective. Moments in `place`. Errors of StateStore::Create, on all ranks; UNIMPLEMENTED for Muon with moments or
  // masters outside memory.
  static absl::StatusOr<std::unique_ptr<ShardedOptimizer>> Create(DataParallel& dp,
                                                                  const ShardedOptimizerOptions& options,
                                                                  const StateStoreOptions& place);

  // Collective. After the last Backward of a step: updates every shard and starts the all-gathers of the parameters.
  StepResult Step(const StepOptions& options = {.clip_norm = 0, .loss_scale = 1});

  // Local.
  void set_lr(double lr) { options_.lr = lr; }
  double lr() const { return options_.lr; }
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }  // of a checkpoint
  const ShardedOptimizerOptions& options() const { return options_; }

  // Local. AdamW, Adam and Muon: "exp_avg", "exp_avg_sq"; of Muon's matrices, exp_avg is the momentum and exp_avg_sq
  // stays 0. SGD: "momentum", or nothing without momentum.
  const std::vector<std::string>& moment_names() const { return names_; }
  // Local. Calls `visit` for each shard of DataParallel::shards(), in order, with its moments in the order of
  // moment_names(), each (layout->shard_count()), valid during the call. `changes`: keeps what `visit` writes into
  // them. Returns the first error.
  using VisitMoments = std::function<absl::Status(std::size_t shard, const std::vector<at::Tensor>& moments)>;
  absl::Status ForEachShard(bool changes, const VisitMoments& visit) const;
  // Whether moments stay valid after the visit: they are in memory.
  bool moments_resident() const { return store_ == nullptr; }
  // Local. Most bytes of moments in device and host memory.
  std::int64_t moment_bytes() const;

 private:
  struct Group;
  ShardedOptimizer(DataParallel& dp, const ShardedOptimizerOptions& options,
                   std::unique_ptr<StateStore> store);
  double DivisorOf(const StepOptions& options, StepResult& result) const;
  // Whether all shards are in memory, so that one call steps all of them.
  bool all_resident() const { return store_ == nullptr && dp_.masters_resident(); }
  absl::Status Agreed(const absl::Status& mine) const;
  absl::Status StepShards(double divisor);
  void AddTo(Group& group, std::size_t shard, const at::Tensor& master,
             const std::vector<at::Tensor>& moments, bool decays) const;
  void AddSlice(Group& group, const Shard& shard, const at::Tensor& master,
                const std::vector<at::Tensor>& moments, std::int64_t begin, std::int64_t count) const;
  void StepMuon(const Shard& shard, const at::Tensor& master, const std::vector<at::Tensor>& moments,
                double divisor, Group& decayed, Group& others);
  void StepGroup(const Group& group, double weight_decay, double divisor);
  std::vector<at::Tensor> MomentsIn(const at::Tensor& state) const;

  DataParallel& dp_;
  ShardedOptimizerOptions options_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> states_;     // by shard: its moments, concatenated; empty with a store
  std::unique_ptr<StateStore> store_;  // null: in states_
  std::int64_t steps_ = 0;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_OPTIM_SHARDED_OPTIMIZER_H_
