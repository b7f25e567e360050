// Noisy top-k gating (Shazeer et al., arXiv:1701.06538). Private to gate.h.
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

// P(x, e) (eq. 8 and 9): the probability that expert e is among the k largest if its noise is drawn again and that of
// the others is kept -> (tokens, experts). `ranking` (tokens, k + 1): columns of the largest noisy logits, best first;
// for k = E (tokens, k), and all probabilities are 1.
at::Tensor SelectionProbabilities(const at::Tensor& logits, const NoisyLogits& noisy,
                                  const at::Tensor& ranking, int k);

// Importance (eq. 6: the sum of weights) and load (eq. 10: the sum of P(x, e), `selection`; the number of rows if it is
// undefined, without noise) of this rank's tokens: (2, experts) float64, recorded. Non-finite rows count in neither.
at::Tensor ImportanceAndLoad(const Routing& routing, const at::Tensor& selection);

// Returns local_tokens * L for L = CV(importance)^2 + CV(load)^2 of `sums` (2, experts), the sums over all ranks. Its
// gradient is that of tokens * L with respect to `local`, this rank's part of the sums.
at::Tensor VariationLoss(const at::Tensor& sums, const at::Tensor& local, std::int64_t local_tokens,
                         std::int64_t tokens);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_NOISY_TOP_K_H_
