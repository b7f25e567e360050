// Routes the tokens of all ranks: gate, census, capacity and losses.
//
//   const TokenRanks ranks = {.data = mesh.axis("tokens"), .group = 4};
//   const RoutedTokens routed = RouteTokens(options, ranks, logits, {.training = true, .seed = seed});
//   const ExpertPlacement placement = PlanPlacement(planner_options, routed.census);
//
// Experts, weights and losses are those of one process with the whole batch. Communication: one all-gather of
// 4 (experts + 2) bytes per rank for the census and, in training, if the gate's loss needs it, one all-reduce of
// LossStatistics. Collective over `data`, in evaluation too.
#ifndef PLAIT_PARALLEL_MOE_ROUTER_H_
#define PLAIT_PARALLEL_MOE_ROUTER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "parallel/moe/gate.h"
#include "parallel/moe/pass_trace.h"
#include "parallel/moe/placement.h"

namespace plait::moe {

// The ranks over which a batch's tokens are distributed.
struct TokenRanks {
  comm::Communicator data = comm::Communicator::Self();  // in the order of tokens
  int group = 1;  // size of expert-parallel groups, which consist of consecutive ranks of `data`
};

struct RoutedTokens {
  Routing routing;
  Census census;                             // of the expert-parallel group, after capacity
  at::Tensor loss;                           // BalanceLoss; undefined: none
  std::vector<std::int64_t> rows_of_expert;  // chosen by the tokens of all ranks, before capacity
  std::int64_t tokens = 0;                   // of all ranks
  std::int64_t dropped = 0;                  // rows over capacity, of all ranks
  std::int64_t not_finite = 0;               // tokens with a non-finite logit, of all ranks
};

// `logits` (tokens, experts) float32 or float64, of this rank's tokens; tokens * k must be below 2^31. Losses and
// capacity apply only in training. On the meta device the census assumes that experts are assigned round-robin. `trace`
// gets the times of gate and census; null: nothing is timed.
RoutedTokens RouteTokens(const GateOptions& options, const TokenRanks& ranks, const at::Tensor& logits,
                         const GateContext& context, PassTrace* trace = nullptr);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_ROUTER_H_
