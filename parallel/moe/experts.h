// The MLPs of several experts on rows that are sorted by expert.
//
//   SavedExperts saved;
//   at::Tensor y = ForwardExperts(options, weights, rows, offsets, &saved);    // rows [offsets[e], offsets[e + 1]) by expert e
//   ExpertGradients g = BackwardExperts(options, weights, saved, offsets, gradient_of_y, {.rows = true, .weights = true});
//
//   plain    y = out f(in x + in_bias) + out_bias
//   gated    y = out (f(gate x + gate_bias) * (in x + in_bias)) + out_bias    (Shazeer, arXiv:2002.05202)
//
// All backends compute the same function: a reference with LibTorch's operators and autograd, a loop over experts with
// LibTorch's GEMMs, and grouped GEMMs (models/linear/grouped.h), without padding or copies of weights. The latter two
// process a few experts at a time, so that hidden activations stay in the cache, and recompute the activation function
// in backward. Experts may have no rows: gradients of their weights are zero. Not recorded by autograd (see layer.h).
// Local. Tensors of other shapes are a programming error.
#ifndef PLAIT_PARALLEL_MOE_EXPERTS_H_
#define PLAIT_PARALLEL_MOE_EXPERTS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/types/span.h"
#include "models/rowwise/activation.h"

namespace plait::moe {

using rowwise::Activation;  // kGelu, kGeluTanh, kRelu, kSilu

// The stacked weights of several experts, all of the same dtype; undefined: the expert has no such weight.
struct ExpertWeights {
  at::Tensor in;              // (experts, hidden, width)
  at::Tensor in_bias = {};    // (experts, hidden)
  at::Tensor gate = {};       // (experts, hidden, width); defined: gated experts
  at::Tensor gate_bias = {};  // (experts, hidden)
  at::Tensor out;             // (experts, width, hidden)
  at::Tensor out_bias = {};   // (experts, width)
};

enum class ExpertBackend { kReference, kLoop, kGrouped };

struct ExpertsOptions {
  Activation activation = Activation::kGelu;
  ExpertBackend backend = ExpertBackend::kGrouped;
};

// Tensors that the backward pass needs from the forward pass; the reference backend saves only `rows`.
struct SavedExperts {
  at::Tensor rows;       // (rows, width): the input itself, not a copy
  at::Tensor in = {};    // (rows, hidden), before the activation
  at::Tensor gate = {};  // (rows, hidden), before the activation
};

// rows (rows, width) sorted by expert; offsets (experts + 1), ascending from 0 to rows -> (rows, width). `saved` may be
// null.
at::Tensor ForwardExperts(const ExpertsOptions& options, const ExpertWeights& weights, const at::Tensor& rows,
                          absl::Span<const std::int64_t> offsets, SavedExperts* saved);

struct WantedGradients {
  bool rows = true;
  bool weights = true;
};
struct ExpertGradients {
  at::Tensor rows;        // undefined if not wanted
  ExpertWeights weights;  // of the weights' shapes; undefined if not wanted or if the weight is undefined
};
// Gradients of the hidden values before the activation, which a backward in two parts keeps in between, so that it
// computes no product twice.
struct HiddenGradients {
  at::Tensor in = {};    // (rows, hidden)
  at::Tensor gate = {};  // (rows, hidden)
};
// `gradient` (rows, width) is that of the result. `kept`: null, or read if its tensors are defined and written if not;
// the reference backend ignores it.
ExpertGradients BackwardExperts(const ExpertsOptions& options, const ExpertWeights& weights,
                                const SavedExperts& saved, absl::Span<const std::int64_t> offsets,
                                const at::Tensor& gradient, const WantedGradients& wanted,
                                HiddenGradients* kept = nullptr);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_EXPERTS_H_
