// Gates: which experts a token goes to, with which weights, and the losses that keep experts balanced.
//
//   const GateOptions options = {.kind = GateKind::kTopK, .experts = 32, .k = 2};
//   Routing routing = Route(options, logits, {.training = true});        // local
//   ... a census of all ranks' routing.experts ...
//   at::Tensor loss = BalanceLoss(options, routing, {rows_of_expert_of_all_ranks, tokens_of_all_ranks});
//
//   kTopK        the k largest logits; weights are the softmax over all experts at these k ("softmax, then top-k"), divided
//                by their sum where `normalizes`: equal to the softmax over the k logits
//   kNoisyTopK   as kTopK of logits + N(0,1) softplus(noise logits) in training (Shazeer et al., arXiv:1701.06538, eq. 3-5);
//                importance and load losses (eq. 6-11)
//   kSwitch      k = 1, weight is the probability itself; loss E sum f_i P_i (Fedus et al., arXiv:2101.03961, eq. 4-6); input jitter
//   kGShard      k = 2, the second expert is kept with probability 2 g_2 in training (Lepikhin et al., arXiv:2006.16668, algorithm 1)
//   kBias        aux-loss-free: a bias is added for the selection alone, never to the weights, and moves by the sign of the load
//                error after each step (Wang et al., arXiv:2408.15664, algorithm 1); sigmoid or softmax scores
//
// Of equal logits the expert with the lower number wins. Randomness is a function of (seed, token index, expert), not of a
// generator: the same on any mesh. All local.
#ifndef PLAIT_PARALLEL_MOE_GATE_H_
#define PLAIT_PARALLEL_MOE_GATE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace plait::moe {

enum class GateKind { kTopK, kNoisyTopK, kSwitch, kGShard, kBias };

struct GateOptions {
  GateKind kind = GateKind::kTopK;
  int experts = 0;
  int k = 2;
  bool normalizes = true;        // kTopK, kNoisyTopK and kBias: weights of a token sum to 1
  bool sigmoid = false;          // kBias: scores are sigmoids, not a softmax
  double balance_weight = 0.01;  // of the gate's own balance loss; kBias has none
  double z_weight = 0;           // of mean(logsumexp^2) (Zoph et al., arXiv:2202.08906, eq. 5)
  double bias_rate = 0.001;      // kBias: of a step
  double jitter = 0;             // kSwitch: logits of inputs times U(1 - jitter, 1 + jitter); see Jitter
};

// INVALID_ARGUMENT, one line that says what was expected: k above the experts or not positive, switch with another k than 1,
// GShard with another than 2, negative weights and rates.
absl::Status Validate(const GateOptions& options);
// "top-k", "noisy-top-k", "switch", "gshard", "bias"; INVALID_ARGUMENT that lists them for another text.
absl::Status ParseGateKind(const std::string& text, GateKind* kind);
const char* Name(GateKind kind);

// How a batch is routed.
struct GateContext {
  bool training = true;
  std::uint64_t seed = 0;
  at::Tensor token_indices = {};  // (tokens) of int64, among those of all ranks; undefined: 0 to tokens - 1
  at::Tensor bias = {};           // (experts) of float32: kBias
  at::Tensor noise_logits = {};   // (tokens, experts): kNoisyTopK in training
};

struct Routing {
  at::Tensor
      experts;  // (tokens, k) of int64, best first; -1: none (a row with a logit that is not finite, GShard's drop)
  at::Tensor
      weights;  // (tokens, k) of the logits' type, recorded by autograd; NaN for rows that are not finite, else 0 at -1
  at::Tensor probabilities;     // (tokens, experts), recorded: what balance losses are made of
  at::Tensor logits;            // (tokens, experts), recorded; with noise in kNoisyTopK
  std::int64_t not_finite = 0;  // tokens with a logit that is not finite: they have no expert
};

// `logits` (tokens, experts) of float32 or float64.
Routing Route(const GateOptions& options, const at::Tensor& logits, const GateContext& context);

// What a gate's losses need of all ranks.
struct GlobalLoad {
  at::Tensor rows_of_expert;  // (experts) of int64
  std::int64_t tokens = 0;
  at::Tensor statistics = {};  // sum over the ranks of LossStatistics; undefined where that is
};

// Sums over this rank's tokens that the balance loss is no linear function of (importance and load of kNoisyTopK), of
// float64, without a gradient; undefined for other gates. The caller sums them over the ranks.
at::Tensor LossStatistics(const GateOptions& options, const Routing& routing);

// Balance and z losses as a sum over this rank's tokens, recorded: the sum over all ranks, divided by the tokens of all
// ranks, is the loss of the whole batch, and so are its gradients. Undefined where the gate has none.
at::Tensor BalanceLoss(const GateOptions& options, const Routing& routing, const GlobalLoad& load);

// kBias: after a step. bias (experts) += rate * sign(mean of rows - rows of this expert).
void MoveBias(const GateOptions& options, const at::Tensor& rows_of_expert, at::Tensor& bias);

// Of each expert's rows, in the order of tokens, those from number `capacity` on are dropped. `rows_before` (experts) of
// int64: rows of the ranks whose tokens come before this one's. routing.experts becomes -1 and weights 0 there.
void DropOverCapacity(Routing& routing, const at::Tensor& rows_before, std::int64_t capacity);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_GATE_H_
