// Routes the tokens of all ranks: the gate's choice, the census of all ranks, capacity and losses.
//
//   const TokenRanks ranks = {.data = mesh.axis("tokens"), .group = 4};
//   const RoutedTokens routed = RouteTokens(options, ranks, logits, {.training = true, .seed = seed});
//   const ExpertPlacement placement = planner.Plan(routed.census, ...);
//
// Experts, weights and losses are those of one process with the whole batch: one all-gather of 4 (experts + 2) bytes of each
// rank makes the census, and where the gate's loss asks for it, one all-reduce the sums. Collective along `data`; in
// evaluation too.
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

// The ranks that have a batch's tokens.
struct TokenRanks {
  comm::Communicator data = comm::Communicator::Self();  // in the order of tokens
  int group = 1;  // ranks of an expert-parallel group: `group` consecutive ones of `data`
};

struct RoutedTokens {
  Routing routing;
  Census census;                             // of the expert-parallel group, behind capacity
  at::Tensor loss;                           // BalanceLoss; undefined: none
  std::vector<std::int64_t> rows_of_expert;  // chosen by the tokens of all ranks, before capacity
  std::int64_t tokens = 0;                   // of all ranks
  std::int64_t dropped = 0;                  // rows over capacity, of all ranks
  std::int64_t not_finite = 0;               // tokens with a logit that is not finite, of all ranks
};

// `logits` (tokens, experts) of float32 or float64. Losses and capacity only in training. On the meta device the census is that
// of experts taken in turn. `trace` gets the times of gate and census; null: nothing is timed.
RoutedTokens RouteTokens(const GateOptions& options, const TokenRanks& ranks, const at::Tensor& logits,
                         const GateContext& context, PassTrace* trace = nullptr);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_ROUTER_H_
