#include "parallel/moe/noisy_top_k.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include "base/check.h"
#include "base/seed.h"
#include "parallel/dropout/random_numbers.h"
#include "parallel/moe/elementwise.h"

namespace plait::moe {
namespace {

// Below this, noise is lost in the rounding of float32 logits; a division by 0 would make gradients NaN.
constexpr double kLeastDeviation = 1e-6;

}  // namespace

NoisyLogits AddNoise(const at::Tensor& logits, const at::Tensor& noise_logits, const GateContext& context) {
  PLAIT_CHECK(noise_logits.defined() && noise_logits.sizes() == logits.sizes() &&
              noise_logits.scalar_type() == logits.scalar_type())
      << "a noisy gate needs noise logits of the logits' shape " << logits.sizes() << " and type in training";
  const at::Tensor normal = dropout::NormalNumbers(base::DeriveSeed(context.seed, "gate noise"),
                                                   context.token_indices, logits.size(1));
  const at::Tensor deviations = Softplus(noise_logits);
  return {logits + normal.to(logits.options()) * deviations, deviations};
}

at::Tensor SelectionProbabilities(const at::Tensor& logits, const NoisyLogits& noisy,
                                  const at::Tensor& ranking, int k) {
  // Not plain ones: NaN in rows that are not finite.
  if (ranking.size(1) == k) return noisy.values.detach() * 0 + 1;
  const at::Tensor columns = ranking.clamp_min(0);
  const at::Tensor selected =
      at::zeros_like(noisy.values.detach()).scatter_(1, columns.narrow(1, 0, k), /*value=*/1);
  const at::Tensor bounds = noisy.values.gather(1, columns.narrow(1, k - 1, 2));
  // Weights 0 and 1 select one of the bounds exactly.
  const at::Tensor bound = bounds.narrow(1, 0, 1).lerp(bounds.narrow(1, 1, 1), selected);
  return NormalCdf((logits - bound) / noisy.deviations.clamp_min(kLeastDeviation));
}

at::Tensor ImportanceAndLoad(const Routing& routing, const at::Tensor& selection) {
  const at::Tensor columns = routing.experts.clamp_min(0);
  const auto spread = [&](const at::Tensor& values) {
    return at::zeros_like(routing.logits).scatter(1, columns, values);
  };
  const auto sum = [&](const at::Tensor& values) {
    return (routing.not_finite > 0 ? values.nan_to_num(0) : values).sum(0, false, at::kDouble);
  };
  const at::Tensor load = selection.defined() ? selection : spread(routing.weights.detach() * 0 + 1);
  return at::stack({sum(spread(routing.weights)), sum(load)});
}

at::Tensor VariationLoss(const at::Tensor& sums, const at::Tensor& local, std::int64_t local_tokens,
                         std::int64_t tokens) {
  if (tokens == 0) return local.sum();  // 0
  const at::Tensor deviations = sums / sums.mean(1, /*keepdim=*/true) - 1;
  const at::Tensor variation = deviations.square().mean(1, /*keepdim=*/true);
  // d CV^2 / d sum_e = 2 (deviation_e - CV^2) / (E mean).
  const at::Tensor slope = (deviations - variation) * 2 / sums.sum(1, /*keepdim=*/true);
  return variation.sum() * static_cast<double>(local_tokens) +
         (slope * (local - local.detach())).sum() * static_cast<double>(tokens);
}

}  // namespace plait::moe
