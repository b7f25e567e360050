// Rows through the experts that a router chose for them, wherever these are: dispatch, experts, combine.
//
//   const ExpertLayer layer(ExchangeRanks(mesh.axis("ep")), {.experts = 32, .mlp = {.activation = Activation::kGelu}});
//   at::Tensor y = layer.Forward(x, routing.experts, routing.weights, home_weights, placement);
//
//   y[t] = sum over j of weights[t, j] expert[experts[t, j]](x[t])
//
// One autograd function: its backward sends gradients the way that rows came, and back. Rows of a rank are cut into
// chunks, so that the messages of one travel while another is computed. Neither chunks nor placement change the result but
// by the rounding of sums. Replicas of the placement are fetched meanwhile (replicas.h).
//
// Gradients of the home weights are sums over the rows of all ranks of the group. Every rank of the group makes the same calls with the
// same placement; a rank may have no rows. A backward in two parts (parallel/pipeline/split_backward.h) sends nothing and multiplies nothing
// twice: until the second part the gradients of the experts' hidden rows are kept, as those of dense layers are.
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
  int chunks = 1;              // of the rows of a rank; the same on all ranks
  PassTrace* trace = nullptr;  // outlives the layer and its graphs; null: nothing is timed
};

class ExpertLayer {
 public:
  ExpertLayer(ExchangeRanks ranks, const ExpertLayerOptions& options);

  // x (tokens, width); experts (tokens, k) of int64, -1: none; weights (tokens, k) of float32 or float64. `home`: of this
  // rank's home experts. At most 2^31 - 1 rows, tokens times k. On the meta device experts are taken in turn.
  at::Tensor Forward(const at::Tensor& x, const at::Tensor& experts, const at::Tensor& weights,
                     const ExpertWeights& home, const ExpertPlacement& placement) const;

  // The placement of this step with most replicas, for PlanPlacement: the step's others have them too, or none. Null: none yet.
  const ExpertPlacement* placement_of_step() const;
  // After each optimizer step; the backward passes of its micro-batches come before.
  void EndStep();

  const ExchangeRanks& ranks() const { return ranks_; }
  const ExpertLayerOptions& options() const { return options_; }

 private:
  ExchangeRanks ranks_;
  ExpertLayerOptions options_;
  std::shared_ptr<ReplicaCache> replicas_;  // graphs have it too
};

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_LAYER_H_
