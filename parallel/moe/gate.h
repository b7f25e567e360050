// Gates: which experts a token goes to, with which weights, and the losses that keep experts balanced.
//
//   const GateOptions options = {.kind = GateKind::kTopK, .experts = 32, .k = 2};
//   Routing routing = Route(options, logits, {.training = true});        // local
//   ... a census of all ranks' routing.experts ...
//   at::Tensor loss = BalanceLoss(options, routing, {rows_of_expert_of_all_ranks, tokens_of_all_ranks});
//
//   kTopK        the k largest logits; weights are the softmax over all experts at these k ("softmax, then
//                top-k"), divided by their sum where `normalizes`: equal to the softmax over the k logits;
//                loss E sum_e f_e P_e, as kSwitch's
//   kNoisyTopK   as kTopK, of H = logits + N(0,1) softplus(noise logits) in training (Shazeer et al.,
//                arXiv:1701.06538, eq. 3-5); importance and load losses (eq. 6-11)
//   kSwitch      k = 1, the weight is the probability itself; loss E sum_e f_e P_e (Fedus et al.,
//                arXiv:2101.03961, eq. 4-6); input jitter
//   kGShard      k = 2, the two weights sum to 1, and in training the second expert is kept with probability
//                2 g_2 (Lepikhin et al., arXiv:2006.16668, algorithm 1); loss of the first choices
//   kBias        aux-loss-free: a bias is added for the selection alone, never to the weights, and moves by the
//                sign of the load error after each step (Wang et al., arXiv:2408.15664, algorithm 1); sigmoid
//                or softmax scores
//
// Of equal values the expert with the lower number wins. Randomness is a function of (seed, token index,
// expert), not of a generator, and every row is computed by itself: experts, weights and gradients of a
// token are bitwise equal whichever rank has it. In evaluation nothing is random.
//
// A row with a logit that is not finite has no expert; its weights and its logits' gradient are NaN, and so
// are the values of the losses. Gradients of the other rows are those of a batch in which this token chose
// no expert. All local; on any device. On the meta device results have shapes alone.
#ifndef PLAIT_PARALLEL_MOE_GATE_H_
#define PLAIT_PARALLEL_MOE_GATE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "parallel/moe/gate_options.h"

namespace plait::moe {

// How a batch is routed.
struct GateContext {
  bool training = true;
  std::uint64_t seed = 0;         // of this layer in this step: base::DeriveSeed
  at::Tensor token_indices = {};  // (tokens) of int64, among those of all ranks; undefined: 0 to tokens - 1
  at::Tensor bias = {};           // (experts), floating: kBias
  at::Tensor noise_logits = {};   // (tokens, experts), of the logits' type: kNoisyTopK in training
};

struct Routing {
  // (tokens, k) of int64, best first; -1: none (a row that is not finite, GShard's drop, DropOverCapacity).
  at::Tensor experts;
  at::Tensor weights;  // (tokens, k) of the logits' type, recorded; 0 where a row was dropped
  // (tokens, experts), recorded: softmax of the logits, with noise in kNoisyTopK; kBias's scores.
  at::Tensor probabilities;
  at::Tensor logits;  // (tokens, experts), recorded; without noise
  // What the balance loss needs of all ranks beside their rows (see LossStatistics), of this rank's tokens;
  // recorded.
  at::Tensor sums = {};
  std::int64_t not_finite = 0;  // rows with a logit that is not finite
};

// `logits` (tokens, experts) of float32 or float64, by rank; no tokens at all is legal.
Routing Route(const GateOptions& options, const at::Tensor& logits, const GateContext& context);

// x (tokens, width), floating, times a uniform number of (1 - amount, 1 + amount) for each (seed, token
// index, column); recorded. For the router's input, in training.
at::Tensor Jitter(const at::Tensor& x, double amount, std::uint64_t seed, const at::Tensor& token_indices);

// What a gate's losses need of all ranks.
struct GlobalLoad {
  at::Tensor rows_of_expert;  // (experts) of int64: of Route, before DropOverCapacity
  std::int64_t tokens = 0;
  at::Tensor statistics = {};  // sum over the ranks of LossStatistics; undefined where that is
};

// Sums over this rank's tokens, of float64, without a gradient: importance and load (eq. 6 and 10) of
// kNoisyTopK (2, experts), first choices of kGShard (experts); undefined for other gates and without a
// balance loss. The caller sums them over the ranks, in place if it likes.
at::Tensor LossStatistics(const Routing& routing);

// Balance and z losses, weighted, as a sum over this rank's tokens, recorded: the sum over all ranks,
// divided by the tokens of all ranks, is the loss of the whole batch, and so are its gradients. Undefined
// where the gate has none.
//   kTopK, kSwitch  E sum_e f_e P_e: f_e is the share of all ranks' rows, P_e the mean probability; 1 if balanced
//   kGShard         the same with the share of first choices: E^2 times the paper's
//   kNoisyTopK      CV(importance)^2 + CV(load)^2; load of evaluation is the number of rows
at::Tensor BalanceLoss(const GateOptions& options, const Routing& routing, const GlobalLoad& load);

// kBias: after a step. bias (experts) += rate * sign(mean of rows - rows of this expert).
void MoveBias(const GateOptions& options, const at::Tensor& rows_of_expert, at::Tensor& bias);

// Rows that an expert takes of a batch of so many tokens of all ranks: k tokens / experts times the factor,
// rounded up; 1 to `tokens`, which are all that can come, and which are the capacity where the factor is 0.
std::int64_t Capacity(const GateOptions& options, std::int64_t tokens);

// Of each expert's rows, in the order of tokens, those from number `capacity` on are dropped. `rows_before`
// (experts) of int64: rows of the ranks whose tokens come before this one's. routing.experts becomes -1 and
// weights 0 there; the losses stay as they are.
void DropOverCapacity(Routing& routing, const at::Tensor& rows_before, std::int64_t capacity);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_GATE_H_
