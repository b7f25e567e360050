// AdamW, Adam, SGD and Muon on the shards of a DataParallel, with clipping by the global norm.
//
//   ShardedOptimizer optimizer(*dp, {.kind = OptimizerKind::kAdamW, .lr = 6e-4, .weight_decay = 0.1});
//   dp->Backward(loss);
//   const StepResult result = optimizer.Step({.clip_norm = 1});
//
// LibTorch's fused kernels, one call per step for all shards with weight decay and one for all others. AdamW:
// Loshchilov & Hutter, arXiv:1711.05101, algorithm 2; Adam: Kingma & Ba, arXiv:1412.6980, algorithm 1; SGD
// with momentum as torch.optim.SGD. Muon (muon.h) steps the matrices of blocks that decay, AdamW all others: along a shard
// axis a unit's momentum is all-gathered, and each rank orthogonalizes the matrices that it has a part of. Layers split over
// ranks (tp) would be orthogonalized part by part: the caller refuses them. Moments have the masters' type. They may live in a file
// (parallel/offload/state_store.h), and masters or parameters too (DataParallelOptions): then a step goes
// from shard to shard, with two of them in memory, and makes the same bits.
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
  double momentum = 0;      // SGD; Muon, Nesterov's
  double weight_decay = 0;  // of the parameters that decay; decoupled in AdamW and Muon
};

struct StepOptions {
  double clip_norm = 0;   // gradients with a larger global norm are scaled down to it; 0: no clipping
  double loss_scale = 1;  // gradients are divided by it first; positive
};

struct StepResult {
  double gradient_norm = 0;  // before clipping, without the loss scale
  bool skipped = false;      // the norm was not finite: nothing has changed, on any rank
  // Of moments, masters or parameters that live in a file, also of reads for the gathers before the step; the
  // same on all ranks. Then the state is lost: go on from a checkpoint.
  absl::Status status = {};
};

class ShardedOptimizer {
 public:
  // With moments in memory. Muon needs masters in memory, too.
  ShardedOptimizer(DataParallel& dp, const ShardedOptimizerOptions& options);
  // Collective. Moments where `place` says; errors as StateStore::Create, on all ranks; Unimplemented for
  // Muon anywhere but in memory.
  static absl::StatusOr<std::unique_ptr<ShardedOptimizer>> Create(DataParallel& dp,
                                                                  const ShardedOptimizerOptions& options,
                                                                  const StateStoreOptions& place);

  // Collective. Steps every shard and all-gathers the parameters.
  StepResult Step(const StepOptions& options = {.clip_norm = 0, .loss_scale = 1});

  // Local.
  void set_lr(double lr) { options_.lr = lr; }
  double lr() const { return options_.lr; }
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }  // of a checkpoint
  const ShardedOptimizerOptions& options() const { return options_; }

  // Local. "exp_avg" and "exp_avg_sq"; "momentum"; none. Muon: as AdamW, exp_avg is the momentum of its
  // matrices, exp_avg_sq of them stays 0.
  const std::vector<std::string>& moment_names() const { return names_; }
  // Local. Calls `visit` for each shard of DataParallel::shards(), in order, with its moments in the order of
  // moment_names(), (layout->shard_count()) each, valid during the call. `changes`: what it writes into them
  // stays. Ends with the first error.
  using VisitMoments = std::function<absl::Status(std::size_t shard, const std::vector<at::Tensor>& moments)>;
  absl::Status ForEachShard(bool changes, const VisitMoments& visit) const;
  // Whether moments stay valid behind the visit: they live in memory.
  bool moments_resident() const { return store_ == nullptr; }
  // In memory, at most.
  std::int64_t moment_bytes() const;

 private:
  struct Group;
  ShardedOptimizer(DataParallel& dp, const ShardedOptimizerOptions& options,
                   std::unique_ptr<StateStore> store);
  double DivisorOf(const StepOptions& options, StepResult& result) const;
  // Whether one call steps all shards: nothing leaves memory in between.
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
  std::vector<at::Tensor> states_;     // by shard: its moments one behind the other; empty with a store
  std::unique_ptr<StateStore> store_;  // null: in states_
  std::int64_t steps_ = 0;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_OPTIM_SHARDED_OPTIMIZER_H_
