#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/softmax.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "parallel/moe/gate.h"
#include "parallel/moe/noisy_top_k.h"

namespace plait::moe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Sum of logsumexp^2 over the rows. Computed with softmax, which LibTorch computes row by row, so that the bits of
// gradients do not depend on the number of rows.
struct SquaredLogSumExp : torch::autograd::Function<SquaredLogSumExp> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits) {
    const at::Tensor p = at::softmax(logits, 1);
    // From the largest logit, whose probability is at least 1 / E.
    const at::Tensor z = logits.amax(1, /*keepdim=*/true) - p.amax(1, /*keepdim=*/true).log();
    context->save_for_backward({p, z});
    return z.square().sum();
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(), "BalanceLoss: its gradient cannot be differentiated again");
    const variable_list saved = context->get_saved_variables();
    return {saved[0] * (saved[1] * (2 * gradients[0]))};
  }
};

// E sum_e f_e P_e; P_e times the tokens of all ranks is a sum over tokens.
at::Tensor SwitchLoss(const GateOptions& options, const Routing& routing, const at::Tensor& rows_of_expert,
                      std::int64_t rows) {
  PLAIT_CHECK(rows_of_expert.defined() && rows_of_expert.numel() == options.experts)
      << "the balance loss of gate " << Name(options.kind) << " needs counts of " << options.experts
      << " experts";
  const at::Tensor& p = routing.probabilities;
  const at::Tensor shares = rows_of_expert.to(at::kDouble) / std::max<std::int64_t>(rows, 1);
  return (p.sum(0) * (shares * options.experts).to(p.options())).sum();
}

at::Tensor NoisyLoss(const Routing& routing, const GlobalLoad& load) {
  PLAIT_CHECK(load.statistics.defined() && load.statistics.sizes() == routing.sums.sizes())
      << "the balance loss of gate noisy-top-k needs the sum of LossStatistics";
  const at::Tensor loss = VariationLoss(load.statistics.to(routing.sums.options()), routing.sums,
                                        routing.logits.size(0), load.tokens);
  const double poison = routing.not_finite > 0 ? std::numeric_limits<double>::quiet_NaN() : 0;
  return (loss + poison).to(routing.logits.scalar_type());
}

at::Tensor OwnLoss(const GateOptions& options, const Routing& routing, const GlobalLoad& load) {
  switch (options.kind) {
    case GateKind::kNoisyTopK:
      return NoisyLoss(routing, load);
    case GateKind::kGShard:
      return SwitchLoss(options, routing, load.statistics, load.tokens);
    default:
      return SwitchLoss(options, routing, load.rows_of_expert, load.tokens * options.k);
  }
}

}  // namespace

at::Tensor LossStatistics(const Routing& routing) {
  return routing.sums.defined() ? routing.sums.detach().clone() : at::Tensor();
}

at::Tensor BalanceLoss(const GateOptions& options, const Routing& routing, const GlobalLoad& load) {
  at::Tensor loss;
  if (options.balance_weight > 0 && options.kind != GateKind::kBias) {
    loss = OwnLoss(options, routing, load) * options.balance_weight;
  }
  if (options.z_weight > 0) {
    const at::Tensor z = SquaredLogSumExp::apply(routing.logits) * options.z_weight;
    loss = loss.defined() ? loss + z : z;
  }
  return loss;
}

}  // namespace plait::moe
