// The experts of a mixture-of-experts layer on several ranks: dispatch, experts, combine.
//
//   const ExpertLayer layer(ExchangeRanks(mesh.axis("ep")), {.experts = 32, .mlp = {.activation = Activation::kGelu}});
//   at::Tensor y = layer.Forward(x, routing.experts, routing.weights, home_weights, placement);
//
//   y[t] = sum over j of weights[t, j] expert[experts[t, j]](x[t])
//
// One autograd function; its backward dispatches and combines gradients in the same way. A rank's tokens are cut into
// chunks, so that the communication of one overlaps with the computation of another. Chunks and placement change the
// result only by the rounding of sums. Replicas of the placement are fetched in the background (replicas.h).
//
// Gradients of the home weights are sums over the rows of all ranks of the group. Collective over the group, with the
// same placement on every rank; a rank may have no tokens. A backward in two parts (parallel/pipeline/split_backward.h)
// repeats no communication and no product: the gradients of the experts' hidden activations are kept until the second.
#ifndef PLAIT_PARALLEL_MOE_LAYER_H_
#define PLAIT_PARALLEL_MOE_LAYER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "parallel/moe/exchange.h"
#include "parallel/moe/experts.h"
#include "parallel/moe/pass_trace.h"
#include "parallel/moe/placement.h"

namespace plait::moe {

class ReplicaCache;

struct ExpertLayerOptions {
  int experts = 0;  // of all ranks
  ExpertsOptions mlp = {};
  int chunks = 1;              // of the tokens of a rank; the same on all ranks
  PassTrace* trace = nullptr;  // must outlive the layer and its graphs; null: nothing is timed
};

class ExpertLayer {
 public:
  ExpertLayer(ExchangeRanks ranks, const ExpertLayerOptions& options);

  // Collective over the group. x (tokens, width); experts (tokens, k) int64, -1: none; weights (tokens, k) float32 or
  // float64; `home`: the weights of this rank's home experts -> (tokens, width). tokens * k must be below 2^31. On the
  // meta device experts are assigned round-robin.
  at::Tensor Forward(const at::Tensor& x, const at::Tensor& experts, const at::Tensor& weights,
                     const ExpertWeights& home, const ExpertPlacement& placement) const;

  // Local. The placement with all replicas that this step has fetched, for PlanPlacement's `previous`; null: none yet.
  const ExpertPlacement* placement_of_step() const;
  // Local. Call after each optimizer step, when the backward passes of its micro-batches have ended.
  void EndStep();

  const ExchangeRanks& ranks() const { return ranks_; }
  const ExpertLayerOptions& options() const { return options_; }

 private:
  ExchangeRanks ranks_;
  ExpertLayerOptions options_;
  std::shared_ptr<ReplicaCache> replicas_;  // shared with autograd graphs
};

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_LAYER_H_
