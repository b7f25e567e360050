// What noisy top-k gates compute (Shazeer et al., arXiv:1701.06538). Private to gate.h.
#ifndef PLAIT_PARALLEL_MOE_NOISY_TOP_K_H_
#define PLAIT_PARALLEL_MOE_NOISY_TOP_K_H_

#include <ATen/core/Tensor.h>

#include "parallel/moe/gate.h"

namespace plait::moe {

// Logits with noise, and the noise's standard deviations (eq. 4); both (tokens, experts), recorded.
struct NoisyLogits {
  at::Tensor values, deviations;
};
NoisyLogits AddNoise(const at::Tensor& logits, const at::Tensor& noise_logits, const GateContext& context);

// P(x, e) (eq. 9): that expert e is among the k largest if its noise is drawn again and the others' stay.
// `ranking` (tokens, k + 1): columns of the largest noisy logits, best first; with k = E it has k, and all
// are 1.
at::Tensor SelectionProbabilities(const at::Tensor& logits, const NoisyLogits& noisy,
                                  const at::Tensor& ranking, int k);

// Importance (eq. 6: the sum of weights) and load (eq. 10: the sum of P(x, e); of rows where `selection` is
// undefined, without noise) of this rank's tokens: (2, experts) of float64, recorded. Rows that are not
// finite count in neither.
at::Tensor ImportanceAndLoad(const Routing& routing, const at::Tensor& selection);

// CV(importance)^2 + CV(load)^2 of sums over all ranks (2, experts), as this rank's share of tokens times
// it, with the gradient of (all tokens) times it by `local`, this rank's part of the sums.
at::Tensor VariationLoss(const at::Tensor& sums, const at::Tensor& local, std::int64_t local_tokens,
                         std::int64_t tokens);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_NOISY_TOP_K_H_
