// Gates: the experts and weights of each token, and auxiliary losses that balance the experts' load.
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
//                2 g_2 (Lepikhin et al., arXiv:2006.16668, algorithm 1); balance loss over first choices
//   kBias        auxiliary-loss-free: a bias is added for the selection only, not to the weights, and moves by the
//                sign of the load error after each step (Wang et al., arXiv:2408.15664, algorithm 1); sigmoid
//                or softmax scores
//
// Ties are broken in favor of the lower expert index. Randomness is a function of (seed, token index, expert), not of a
// generator, and rows are computed independently: experts, weights and gradients of a token are bitwise identical
// whichever rank has it. Evaluation is deterministic.
//
// A row with a non-finite logit has no expert; its weights and its logits' gradient are NaN, and so
// are the values of the losses. Gradients of the other rows are those of a batch in which this token chose
// no expert. Everything here is local, on any device. On the meta device results have only shapes.
#ifndef PLAIT_PARALLEL_MOE_GATE_H_
#define PLAIT_PARALLEL_MOE_GATE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "parallel/moe/gate_options.h"

namespace plait::moe {

// Inputs of a gate besides the logits.
struct GateContext {
  bool training = true;
  std::uint64_t seed = 0;         // of this layer in this step: base::DeriveSeed
  at::Tensor token_indices = {};  // (tokens) int64, among the tokens of all ranks; undefined: 0 to tokens - 1
  at::Tensor bias = {};           // kBias: (experts), floating-point
  at::Tensor noise_logits = {};   // kNoisyTopK in training: (tokens, experts), of the logits' type
};

struct Routing {
  // (tokens, k) int64, best first; -1: none (a row that is not finite, GShard's drop, DropOverCapacity).
  at::Tensor experts;
  at::Tensor weights;  // (tokens, k) of the logits' type, recorded by autograd; 0 where a row was dropped
  // (tokens, experts), recorded: softmax of the logits, of the noisy logits for kNoisyTopK in training; kBias's scores.
  at::Tensor probabilities;
  at::Tensor logits;  // (tokens, experts), recorded; without noise
  // This rank's contribution to LossStatistics; recorded.
  at::Tensor sums = {};
  std::int64_t not_finite = 0;  // number of rows with a non-finite logit
};

// `logits` (tokens, experts) float32 or float64, of this rank's tokens; there may be none.
Routing Route(const GateOptions& options, const at::Tensor& logits, const GateContext& context);

// x (tokens, width), floating-point, times uniform numbers in (1 - amount, 1 + amount), one per (seed, token
// index, column); recorded. For the router's input, in training.
at::Tensor Jitter(const at::Tensor& x, double amount, std::uint64_t seed, const at::Tensor& token_indices);

// Sums over all ranks that the balance losses need.
struct GlobalLoad {
  at::Tensor rows_of_expert;  // (experts) int64: as routed, before DropOverCapacity
  std::int64_t tokens = 0;
  at::Tensor statistics = {};  // sum of LossStatistics over the ranks; undefined if those are
};

// Sums over this rank's tokens, float64, without a gradient: importance and load (eq. 6 and 10) for
// kNoisyTopK (2, experts), first choices for kGShard (experts); undefined for other gates and without a
// balance loss. The caller sums them over the ranks; the tensor is a copy, so in place if it likes.
at::Tensor LossStatistics(const Routing& routing);

// Weighted balance and z losses, summed over this rank's tokens; recorded. The sum over all ranks, divided by the
// tokens of all ranks, is the loss of the whole batch; likewise the gradients. Undefined if the gate has no loss.
//   kTopK, kSwitch  E sum_e f_e P_e, f_e: fraction of all ranks' rows, P_e: mean probability; 1 if balanced
//   kGShard         the same with the fraction of first choices: E^2 times the paper's
//   kNoisyTopK      CV(importance)^2 + CV(load)^2; in evaluation the load is the number of rows
at::Tensor BalanceLoss(const GateOptions& options, const Routing& routing, const GlobalLoad& load);

// kBias, after each step: bias (experts) += bias_rate * sign(mean rows per expert - rows of this expert).
void MoveBias(const GateOptions& options, const at::Tensor& rows_of_expert, at::Tensor& bias);

// Maximum number of rows per expert for a batch of `tokens` tokens over all ranks: ceil(capacity_factor * k * tokens /
// experts), clamped to [1, tokens]; `tokens` (at least 1) if the factor is 0.
std::int64_t Capacity(const GateOptions& options, std::int64_t tokens);

// Keeps the first `capacity` rows of each expert, in the order of tokens over all ranks, and drops the others.
// `rows_before` (experts) int64: rows of the ranks whose tokens come before this one's. Sets routing.experts to -1 and
// weights to 0 for dropped rows; the losses do not change.
void DropOverCapacity(Routing& routing, const at::Tensor& rows_before, std::int64_t capacity);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_GATE_H_
