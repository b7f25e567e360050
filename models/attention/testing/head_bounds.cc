#include "models/attention/testing/head_bounds.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

namespace plait::attention {

// From the inside out, with u = sums: a sum of products errs by 8 u sum |a b| (terms of independent signs:
// the standard deviation is below u sum |a b|), the exponential by 4 u of itself, the normalizer, a sum of
// one sign, by (sqrt(seq) + 4) u of itself (4 standard deviations of 16 sums of seq / 16 terms each). A
// probability has a relative error of twice the largest error of its row's scores. Behind it, what is
// multiplied passes its error on, and each stored result adds its own. 1e-30: probabilities that underflow.
HeadBounds BoundsOfHeads(const std::vector<at::Tensor>& heads, const at::Tensor& of_out, bool causal,
                         const Precision& precision, const std::vector<at::Tensor>& errors) {
  const at::Tensor &q = heads[0], &k = heads[1], &v = heads[2], &g = of_out;
  const at::Tensor q_error = errors.empty() ? at::zeros_like(q) : errors[0],
                   k_error = errors.empty() ? at::zeros_like(k) : errors[1];
  const std::int64_t seq = q.size(2);
  const double u = precision.sums, stored = precision.stored, c = 8 * u,
               scale = 1 / std::sqrt(static_cast<double>(q.size(3)));
  const auto across = [](const at::Tensor& a, const at::Tensor& b) { return a.matmul(b.transpose(-1, -2)); };
  const auto down = [](const at::Tensor& a, const at::Tensor& b) { return a.transpose(-1, -2).matmul(b); };

  const at::Tensor later = at::ones({seq, seq}, at::kBool).triu(causal ? 1 : seq);
  const at::Tensor scores = across(q, k) * scale, seen = scores.masked_fill(later, -INFINITY);
  const at::Tensor largest = seen.amax(-1, true);
  const at::Tensor weights = (seen - largest).exp(), probabilities = weights / weights.sum(-1, true);
  // A score is scaled, and the largest subtracted: each rounds.
  const at::Tensor of_score =
      (across(q.abs(), k.abs()) * c + across(q_error, k.abs()) + across(q.abs(), k_error)) * scale +
      (scores.abs() + largest.abs()) * (3 * u + stored);
  const at::Tensor relative = of_score.masked_fill(later, 0).amax(-1, true) * 2 +
                              ((std::sqrt(static_cast<double>(seq)) + 8) * u + stored);
  const at::Tensor out = probabilities.matmul(v);
  const at::Tensor values = probabilities.matmul(v.abs()) * (relative + c) + out.abs() * stored;

  const at::Tensor of_p = across(g, v), of_p_error = across(g.abs(), v.abs()) * c + of_p.abs() * stored;
  const at::Tensor mean = (probabilities * of_p).sum(-1, true);
  const at::Tensor mean_error = (probabilities * (of_p.abs() * (relative + c) + of_p_error)).sum(-1, true);
  const at::Tensor of_s = probabilities * (of_p - mean);
  const at::Tensor of_s_error = of_s.abs() * (relative + stored) +
                                probabilities * (of_p_error + mean_error + (of_p.abs() + mean.abs()) * 4 * u);
  const at::Tensor dq = of_s.matmul(k), dk = down(of_s, q), dv = down(probabilities, g);
  const at::Tensor dq_error = (of_s_error + of_s.abs() * c).matmul(k.abs()) + of_s.abs().matmul(k_error);
  const at::Tensor dk_error = down(of_s_error + of_s.abs() * c, q.abs()) + down(of_s.abs(), q_error);
  const at::Tensor dv_error = down(probabilities * (relative + c), g.abs()) + dv.abs() * stored;
  return {values + 1e-30, (dq_error + dq.abs() * stored) * scale + 1e-30,
          (dk_error + dk.abs() * stored) * scale + 1e-30, dv_error + 1e-30};
}

}  // namespace plait::attention
