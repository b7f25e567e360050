#include "parallel/optim/sharded_optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace plait::parallel {
namespace {

constexpr bool kAmsgrad = false;
constexpr bool kMaximize = false;
constexpr bool kNesterov = false;
constexpr double kDampening = 0;
// As torch.nn.utils.clip_grad_norm_.
constexpr double kClipEpsilon = 1e-6;

std::vector<std::string> MomentNames(const ShardedOptimizerOptions& options) {
  if (options.kind != OptimizerKind::kSgd) return {"exp_avg", "exp_avg_sq"};
  return options.momentum == 0 ? std::vector<std::string>() : std::vector<std::string>{"momentum"};
}

}  // namespace

// What one call of a fused kernel steps.
struct ShardedOptimizer::Group {
  std::vector<at::Tensor> values, gradients;
  std::vector<std::vector<at::Tensor>> moments;
};

ShardedOptimizer::ShardedOptimizer(DataParallel& dp, const ShardedOptimizerOptions& options)
    : dp_(dp), options_(options) {
  for (std::string& name : MomentNames(options)) {
    Moment moment{std::move(name), {}};
    for (const Shard& shard : dp.shards()) moment.shards.push_back(at::zeros_like(shard.master));
    moments_.push_back(std::move(moment));
  }
}

double ShardedOptimizer::ScaleOf(const StepOptions& options, StepResult& result) const {
  result.gradient_norm = std::numeric_limits<double>::quiet_NaN();
  if (options.clip_norm <= 0 && options.loss_scale == 1) return 1;
  result.gradient_norm = dp_.GradientNorm() / options.loss_scale;
  result.skipped = options.loss_scale != 1 && !std::isfinite(result.gradient_norm);
  const double clip = options.clip_norm > 0 ? options.clip_norm / (result.gradient_norm + kClipEpsilon) : 1;
  return options.loss_scale / std::min(clip, 1.0);
}

StepResult ShardedOptimizer::Step(const StepOptions& options) {
  const at::NoGradGuard no_grad;
  StepResult result;
  const double divisor = ScaleOf(options, result);
  if (!result.skipped) {
    ++steps_;
    StepShares(divisor);
  }
  dp_.Publish();
  return result;
}

ShardedOptimizer::Group ShardedOptimizer::GroupOf(bool decays) const {
  Group group;
  group.moments.resize(moments_.size());
  const std::vector<Shard>& shards = dp_.shards();
  for (std::size_t u = 0; u < shards.size(); ++u) {
    const std::int64_t decayed = shards[u].layout->DecayedCount(dp_.axes().shard.rank());
    const std::int64_t begin = decays ? 0 : decayed;
    const std::int64_t count = decays ? decayed : shards[u].layout->shard_count() - decayed;
    if (count == 0) continue;
    group.values.push_back(shards[u].master.narrow(0, begin, count));
    group.gradients.push_back(shards[u].gradient.narrow(0, begin, count));
    for (std::size_t m = 0; m < moments_.size(); ++m) {
      group.moments[m].push_back(moments_[m].shards[u].narrow(0, begin, count));
    }
  }
  return group;
}

void ShardedOptimizer::StepShares(double divisor) {
  for (const bool decays : {true, false}) {
    const Group group = GroupOf(decays);
    if (!group.values.empty()) StepGroup(group, decays ? options_.weight_decay : 0, divisor);
  }
}

void ShardedOptimizer::StepGroup(const Group& g, double weight_decay, double divisor) {
  const at::TensorOptions options = at::TensorOptions(at::kFloat).device(g.values[0].device());
  // The kernels divide by a float32 number, which would be too coarse for other types.
  const bool divides = divisor != 1 && g.values[0].scalar_type() == at::kFloat;
  if (divisor != 1 && !divides) at::_foreach_div_(g.gradients, divisor);
  const std::optional<at::Tensor> scale =
      divides ? std::optional<at::Tensor>(at::full({}, divisor, options)) : std::nullopt;
  if (options_.kind == OptimizerKind::kSgd) {
    const at::TensorList momenta = g.moments.empty() ? at::TensorList() : at::TensorList(g.moments[0]);
    at::_fused_sgd_(g.values, g.gradients, momenta, weight_decay, options_.momentum, options_.lr, kDampening,
                    kNesterov, kMaximize, /*is_first_step=*/steps_ == 1, scale);
    return;
  }
  const std::vector<at::Tensor> steps(g.values.size(), at::full({}, static_cast<double>(steps_), options));
  using Fused = void (*)(at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                         at::TensorList, double, double, double, double, double, bool, bool,
                         const std::optional<at::Tensor>&, const std::optional<at::Tensor>&);
  const Fused fused = options_.kind == OptimizerKind::kAdamW ? static_cast<Fused>(at::_fused_adamw_)
                                                             : static_cast<Fused>(at::_fused_adam_);
  fused(g.values, g.gradients, g.moments[0], g.moments[1], {}, steps, options_.lr, options_.beta1,
        options_.beta2, weight_decay, options_.epsilon, kAmsgrad, kMaximize, scale, std::nullopt);
}

std::int64_t ShardedOptimizer::moment_bytes() const {
  std::int64_t bytes = 0;
  for (const Moment& moment : moments_) {
    for (const at::Tensor& shard : moment.shards) bytes += static_cast<std::int64_t>(shard.nbytes());
  }
  return bytes;
}

}  // namespace plait::parallel
