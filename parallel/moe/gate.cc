#include "parallel/moe/gate.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "base/check.h"
#include "base/seed.h"
#include "parallel/dropout/random_numbers.h"
#include "parallel/moe/elementwise.h"
#include "parallel/moe/noisy_top_k.h"
#include "parallel/moe/select_experts.h"

namespace plait::moe {
namespace {

bool Normalizes(const GateOptions& options) {
  return options.kind == GateKind::kGShard ||
         (options.kind != GateKind::kSwitch && options.normalizes && options.k > 1);
}

bool IsNoisy(const GateOptions& options, const GateContext& context) {
  return options.kind == GateKind::kNoisyTopK && context.training;
}

void CheckInput(const GateOptions& options, const at::Tensor& logits, const GateContext& context) {
  PLAIT_CHECK(logits.dim() == 2 && logits.size(1) == options.experts)
      << "logits of shape " << logits.sizes() << " for " << options.experts << " experts";
  PLAIT_CHECK(logits.scalar_type() == at::kFloat || logits.scalar_type() == at::kDouble)
      << "logits of " << logits.scalar_type() << ", expected float32 or float64";
  const at::Tensor& tokens = context.token_indices;
  PLAIT_CHECK(!tokens.defined() || (tokens.dim() == 1 && tokens.size(0) == logits.size(0)))
      << tokens.sizes() << " token indices for " << logits.size(0) << " rows of logits";
  PLAIT_CHECK(options.kind != GateKind::kBias ||
              (context.bias.defined() && context.bias.numel() == options.experts))
      << "gate bias needs a bias of " << options.experts << " experts";
  PLAIT_CHECK(options.kind != GateKind::kBias || FindNotFinite(context.bias.detach().view({1, -1})).rows == 0)
      << "gate bias: a bias is not finite";
}

// Weights of a token, normalized to sum 1, from the logarithms of scores: avoids a division by a sum of 0.
at::Tensor NormalizedWeights(const GateOptions& options, const at::Tensor& chosen_logits) {
  return at::softmax(options.sigmoid ? -Softplus(-chosen_logits) : chosen_logits, 1);
}

// In training the second expert is kept with probability 2 g_2, which is 1 if both weights are equal.
void DropSecondExperts(const GateContext& context, Routing& routing) {
  const at::Tensor uniform = dropout::UniformNumbers(
      base::DeriveSeed(context.seed, "second expert of a gate"), context.token_indices, 1);
  const at::Tensor second = routing.weights.detach().narrow(1, 1, 1).to(at::kDouble);
  const at::Tensor dropped = (second * 2).le(uniform);  // not where it is NaN
  const at::Tensor both = at::cat({at::zeros_like(dropped), dropped}, 1);
  routing.experts = routing.experts.masked_fill(both, -1);
  routing.weights = routing.weights.masked_fill(both, 0);
}

at::Tensor FirstChoices(const Routing& routing) {
  const std::int64_t experts = routing.logits.size(1);
  const at::Tensor first = routing.experts.select(1, 0);
  // Index 0 counts tokens without an expert.
  const at::Tensor counts = at::zeros({experts + 1}, first.options());
  return counts.scatter_add(0, first + 1, at::ones_like(first)).narrow(0, 1, experts).to(at::kDouble);
}

void AddSums(const GateOptions& options, const NoisyLogits& noisy, const at::Tensor& ranking,
             Routing& routing) {
  if (options.kind == GateKind::kGShard) routing.sums = FirstChoices(routing);
  if (options.kind != GateKind::kNoisyTopK) return;
  at::Tensor selection;
  if (noisy.deviations.defined())
    selection = SelectionProbabilities(routing.logits, noisy, ranking, options.k);
  routing.sums = ImportanceAndLoad(routing, selection);
}

}  // namespace

Routing Route(const GateOptions& options, const at::Tensor& logits, const GateContext& given) {
  CheckInput(options, logits, given);
  GateContext context = given;
  if (!context.token_indices.defined()) {
    context.token_indices = at::arange(logits.size(0), logits.options().dtype(at::kLong));
  }
  context.token_indices = context.token_indices.to(logits.device());
  NoisyLogits noisy = {logits, {}};
  if (IsNoisy(options, context)) noisy = AddNoise(logits, context.noise_logits, context);

  Routing routing;
  routing.logits = logits;
  if (const NotFinite found = FindNotFinite(noisy.values.detach()); found.rows > 0) {
    routing.not_finite = found.rows;
    // Products, so that gradients of these rows are NaN too.
    routing.logits = logits * found.mark;
    noisy.values = noisy.values * found.mark;
  }
  routing.probabilities = options.sigmoid ? Sigmoid(noisy.values) : at::softmax(noisy.values, 1);
  const at::Tensor values = options.kind == GateKind::kBias
                                ? routing.probabilities.detach() + context.bias.to(logits.options())
                                : noisy.values.detach();
  // Noisy gates also need the next one: it is the threshold of those that are selected.
  const int ranked = noisy.deviations.defined() ? std::min(options.k + 1, options.experts) : options.k;
  const at::Tensor ranking = SelectExperts(values, ranked);
  routing.experts = ranking.narrow(1, 0, options.k).contiguous();
  const at::Tensor columns = routing.experts.clamp_min(0);
  routing.weights = Normalizes(options) ? NormalizedWeights(options, noisy.values.gather(1, columns))
                                        : routing.probabilities.gather(1, columns);
  if (options.balance_weight > 0) AddSums(options, noisy, ranking, routing);
  if (options.kind == GateKind::kGShard && context.training) DropSecondExperts(context, routing);
  return routing;
}

at::Tensor Jitter(const at::Tensor& x, double amount, std::uint64_t seed, const at::Tensor& token_indices) {
  PLAIT_CHECK(x.dim() == 2 && token_indices.dim() == 1 && token_indices.size(0) == x.size(0))
      << "x of shape " << x.sizes() << " with " << token_indices.sizes() << " token indices";
  if (amount == 0) return x;
  const at::Tensor uniform =
      dropout::UniformNumbers(base::DeriveSeed(seed, "gate jitter"), token_indices.to(x.device()), x.size(1));
  return x * (1 - amount + 2 * amount * uniform).to(x.options());
}

void MoveBias(const GateOptions& options, const at::Tensor& rows_of_expert, at::Tensor& bias) {
  PLAIT_CHECK(rows_of_expert.numel() == options.experts && bias.numel() == options.experts)
      << rows_of_expert.numel() << " counts and " << bias.numel() << " biases of " << options.experts
      << " experts";
  // In integers, so that equal loads give exactly 0.
  const at::Tensor missing = rows_of_expert.sum() - rows_of_expert * options.experts;
  bias.detach().add_(missing.sign().to(bias.options()), options.bias_rate);
}

}  // namespace plait::moe
