// The multilayer perceptrons of several experts on rows that are sorted by expert.
//
//   SavedExperts saved;
//   at::Tensor y = ForwardExperts(options, weights, rows, offsets, &saved);    // rows [offsets[e], offsets[e + 1]) by expert e
//   ExpertGradients g = BackwardExperts(options, weights, saved, offsets, gradient_of_y, {.rows = true, .weights = true});
//
//   plain    y = out f(in x + in_bias) + out_bias
//   gated    y = out (f(gate x + gate_bias) * (in x + in_bias)) + out_bias    (Shazeer, arXiv:2002.05202)
//
// Backends compute the same function: a reference of LibTorch's operators and its autograd, a loop of LibTorch's
// products, and grouped products (models/linear/grouped.h), which pad nothing and copy no weight. The latter two go
// expert by expert, so that hidden rows are used while they are in the cache; the activation's values are computed
// again in the backward pass. Experts without rows are legal: gradients of their weights are zero. Not recorded by
// autograd (layer.h does that). Local. Tensors of other shapes abort.
#ifndef PLAIT_PARALLEL_MOE_EXPERTS_H_
#define PLAIT_PARALLEL_MOE_EXPERTS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/types/span.h"
#include "models/rowwise/activation.h"

namespace plait::moe {

using rowwise::Activation;  // kGelu, kGeluTanh, kRelu, kSilu

// Of `experts` experts, one behind the other; all of one type. Undefined: there is none.
struct ExpertWeights {
  at::Tensor in;            // (experts, hidden, width)
  at::Tensor in_bias = {};  // (experts, hidden)
  at::Tensor gate = {};     // (experts, hidden, width): a gated expert
  at::Tensor gate_bias = {};
  at::Tensor out;            // (experts, width, hidden)
  at::Tensor out_bias = {};  // (experts, width)
};

enum class ExpertBackend { kReference, kLoop, kGrouped };

struct ExpertsOptions {
  Activation activation = Activation::kGelu;
  ExpertBackend backend = ExpertBackend::kGrouped;
};

// What the backward pass needs of the forward pass. Tensors, so that autograd can keep them; of the reference, rows
// alone.
struct SavedExperts {
  at::Tensor rows;       // (rows, width): as they were given, not a copy
  at::Tensor in = {};    // (rows, hidden), before the activation
  at::Tensor gate = {};  // (rows, hidden), before the activation
};

// rows (rows, width), offsets (experts + 1), from 0 to rows; `saved` may be null.
at::Tensor ForwardExperts(const ExpertsOptions& options, const ExpertWeights& weights, const at::Tensor& rows,
                          absl::Span<const std::int64_t> offsets, SavedExperts* saved);

struct WantedGradients {
  bool rows = true;
  bool weights = true;
};
struct ExpertGradients {
  at::Tensor rows;        // undefined where it is not wanted, as are the weights'
  ExpertWeights weights;  // of the shapes of the weights; those that are undefined stay so
};
// Of what comes before the activation: a backward in two parts keeps them in between, so that it computes no product twice.
struct HiddenGradients {
  at::Tensor in = {};    // (rows, hidden)
  at::Tensor gate = {};  // (rows, hidden)
};
// `kept`: null, or read where it is defined and else written; of the reference neither.
ExpertGradients BackwardExperts(const ExpertsOptions& options, const ExpertWeights& weights,
                                const SavedExperts& saved, absl::Span<const std::int64_t> offsets,
                                const at::Tensor& gradient, const WantedGradients& wanted,
                                HiddenGradients* kept = nullptr);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_EXPERTS_H_
