// Bounds on the rounding errors of attention and its gradients.
#ifndef PLAIT_MODELS_ATTENTION_TESTING_HEAD_BOUNDS_H_
#define PLAIT_MODELS_ATTENTION_TESTING_HEAD_BOUNDS_H_

#include <ATen/core/Tensor.h>

#include <vector>

namespace plait::attention {

struct Precision {
  double sums;    // unit roundoff of sums
  double stored;  // of what is stored: scores, probabilities, their gradients, results
};

// (batch, heads, seq, width) each.
struct HeadBounds {
  at::Tensor values, of_query, of_key, of_value;
};

// `heads`: queries, keys and values, (batch, heads, seq, width) float64 each; `of_out`: the gradient of the results.
// `errors`: elementwise errors that queries and keys already have.
HeadBounds BoundsOfHeads(const std::vector<at::Tensor>& heads, const at::Tensor& of_out, bool causal,
                         const Precision& precision, const std::vector<at::Tensor>& errors = {});

}  // namespace plait::attention

#endif  // PLAIT_MODELS_ATTENTION_TESTING_HEAD_BOUNDS_H_
