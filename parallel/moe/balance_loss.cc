#include <ATen/TensorOperators.h>
#include <ATen/ops/logsumexp.h>

#include <algorithm>

#include "base/check.h"
#include "parallel/moe/gate.h"

namespace plait::moe {
namespace {

// E sum_e f_e P_e of the rows of all ranks; P_e times the tokens of all ranks is a sum over tokens.
at::Tensor SwitchLoss(const GateOptions& options, const Routing& routing, const at::Tensor& rows_of_expert,
                      std::int64_t rows) {
  const at::Tensor& p = routing.probabilities;
  const at::Tensor shares = rows_of_expert.to(at::kDouble) / std::max<std::int64_t>(rows, 1);
  return (p.sum(0) * (shares * options.experts).to(p.options())).sum();
}

}  // namespace

at::Tensor LossStatistics(const GateOptions& /*options*/, const Routing& /*routing*/) { return {}; }

at::Tensor BalanceLoss(const GateOptions& options, const Routing& routing, const GlobalLoad& load) {
  at::Tensor loss;
  if (options.balance_weight > 0 && options.kind != GateKind::kBias) {
    loss =
        SwitchLoss(options, routing, load.rows_of_expert, options.k * load.tokens) * options.balance_weight;
  }
  if (options.z_weight > 0) {
    const at::Tensor z = at::logsumexp(routing.logits, 1).square().sum() * options.z_weight;
    loss = loss.defined() ? loss + z : z;
  }
  return loss;
}

}  // namespace plait::moe
