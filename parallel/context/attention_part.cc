#include "parallel/context/attention_part.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>

#include <cmath>
#include <limits>

#include "parallel/context/fused_attention.h"

namespace plait::context_parallel {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

at::ScalarType SumType(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

double ScaleOf(const at::Tensor& queries) { return 1 / std::sqrt(static_cast<double>(queries.size(3))); }

at::Tensor Scores(const PartInput& in) {
  const at::ScalarType type = SumType(in.queries);
  at::Tensor scores = at::matmul(in.queries.to(type) * ScaleOf(in.queries), in.keys.to(type).transpose(2, 3));
  if (!in.causal) return scores;
  const std::int64_t keys = in.keys.size(2);
  return scores.masked_fill_(at::ones({keys, keys}, scores.options().dtype(at::kBool)).triu_(1), -kInfinity);
}

at::Tensor Dropped(const PartInput& in, const at::Tensor& of_probabilities) {
  if (!in.dropout.has_value()) return of_probabilities;
  return dropout::DropProbabilities(of_probabilities, *in.dropout, in.query_positions, in.key_positions,
                                    in.length);
}

at::Tensor ExpDifference(const at::Tensor& x, const at::Tensor& log_sum) { return (x - log_sum).exp_(); }

bool IsFused(const PartInput& in) {
  return !in.dropout.has_value() && (in.queries.is_cpu() || in.queries.is_meta());
}

}  // namespace

PartOutput AttendToPart(const PartInput& input) {
  if (IsFused(input)) {
    const auto [out, log_sum] = FusedForward(input.queries, input.keys, input.values, input.causal);
    return {out, log_sum};
  }
  const at::Tensor scores = Scores(input);
  const at::Tensor log_sum = at::logsumexp(scores, {3});
  const at::Tensor probabilities = ExpDifference(scores, log_sum.unsqueeze(3));
  return {at::matmul(Dropped(input, probabilities), input.values.to(scores.scalar_type())), log_sum};
}

void Merge(const PartOutput& part, PartOutput& sum) {
  const at::Tensor log_sum = at::logaddexp(sum.log_sum, part.log_sum);
  sum.out.mul_(ExpDifference(sum.log_sum, log_sum).unsqueeze(3));
  sum.out.add_(part.out * ExpDifference(part.log_sum, log_sum).unsqueeze(3));
  sum.log_sum.copy_(log_sum);
}

PartGradients GradientsOfPart(const PartInput& input, const at::Tensor& out_gradient,
                              const PartOutput& whole) {
  if (IsFused(input)) {
    const auto [queries, keys, values] = FusedBackward(out_gradient, input.queries, input.keys, input.values,
                                                       whole.out, whole.log_sum, input.causal);
    return {queries, keys, values};
  }
  const at::Tensor probabilities = ExpDifference(Scores(input), whole.log_sum.unsqueeze(3));
  const at::ScalarType type = probabilities.scalar_type();
  const at::Tensor gradient = out_gradient.to(type);
  const at::Tensor delta = (whole.out * gradient).sum(3);
  const at::Tensor of_probabilities =
      Dropped(input, at::matmul(gradient, input.values.to(type).transpose(2, 3)));
  const at::Tensor of_scores =
      probabilities * (of_probabilities - delta.unsqueeze(3)) * ScaleOf(input.queries);
  return {at::matmul(of_scores, input.keys.to(type)),
          at::matmul(of_scores.transpose(2, 3), input.queries.to(type)),
          at::matmul(Dropped(input, probabilities).transpose(2, 3), gradient)};
}

void CheckOnce() {
  TORCH_CHECK(!at::GradMode::is_enabled(), "Attention: its gradient cannot be differentiated again");
}

}  // namespace plait::context_parallel
