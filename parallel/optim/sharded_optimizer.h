// AdamW, Adam and SGD on the shares of a DataParallel, with clipping by the global norm.
//
//   ShardedOptimizer optimizer(*dp, {.kind = OptimizerKind::kAdamW, .lr = 6e-4, .weight_decay = 0.1});
//   dp->Backward(loss);
//   const StepResult result = optimizer.Step({.clip_norm = 1});
//
// LibTorch's fused kernels, one call per step for all shares with weight decay and one for all others. AdamW:
// Loshchilov & Hutter, arXiv:1711.05101, algorithm 2; Adam: Kingma & Ba, arXiv:1412.6980, algorithm 1; SGD
// with momentum as torch.optim.SGD. Moments have the masters' type.
#ifndef PLAIT_PARALLEL_OPTIM_SHARDED_OPTIMIZER_H_
#define PLAIT_PARALLEL_OPTIM_SHARDED_OPTIMIZER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "parallel/sharding/data_parallel.h"

namespace plait::parallel {

enum class OptimizerKind { kAdamW, kAdam, kSgd };

struct ShardedOptimizerOptions {
  OptimizerKind kind = OptimizerKind::kAdamW;
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double momentum = 0;      // SGD
  double weight_decay = 0;  // of the parameters that decay; decoupled in AdamW alone
};

struct StepOptions {
  double clip_norm = 0;   // gradients with a larger global norm are scaled down to it; 0: no clipping
  double loss_scale = 1;  // gradients are divided by it first
};

struct StepResult {
  double gradient_norm =
      0;  // before clipping, without the loss scale; NaN where nobody asked: no clipping, scale 1
  bool skipped = false;  // the norm was not finite and the loss scaled: nothing has changed
};

class ShardedOptimizer {
 public:
  ShardedOptimizer(DataParallel& dp, const ShardedOptimizerOptions& options);

  // Collective. Steps every share and publishes the parameters.
  StepResult Step(const StepOptions& options = {.clip_norm = 0, .loss_scale = 1});

  // Local.
  void set_lr(double lr) { options_.lr = lr; }
  double lr() const { return options_.lr; }
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }  // of a checkpoint
  const ShardedOptimizerOptions& options() const { return options_; }

  // A kind of moment, one tensor per unit, as DataParallel::shards(): "exp_avg", "exp_avg_sq"; "momentum".
  struct Moment {
    std::string name;
    std::vector<at::Tensor> shards;  // (layout->shard_count())
  };
  const std::vector<Moment>& moments() const { return moments_; }
  std::int64_t moment_bytes() const;

 private:
  struct Group;
  double ScaleOf(const StepOptions& options, StepResult& result) const;
  Group GroupOf(bool decays) const;
  // Gradients are divided by `divisor`.
  void StepShares(double divisor);
  void StepGroup(const Group& group, double weight_decay, double divisor);

  DataParallel& dp_;
  ShardedOptimizerOptions options_;
  std::vector<Moment> moments_;
  std::int64_t steps_ = 0;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_OPTIM_SHARDED_OPTIMIZER_H_
