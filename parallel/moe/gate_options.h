// Options of a mixture of experts' gate; see gate.h.
#ifndef PLAIT_PARALLEL_MOE_GATE_OPTIONS_H_
#define PLAIT_PARALLEL_MOE_GATE_OPTIONS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace plait::moe {

enum class GateKind { kTopK, kNoisyTopK, kSwitch, kGShard, kBias };

struct GateOptions {
  GateKind kind = GateKind::kTopK;
  int experts = 0;
  int k = 2;
  // kTopK, kNoisyTopK and kBias: weights of a token are normalized to sum 1. Ignored for k = 1, where the weight would
  // be the constant 1 and the router would not learn.
  bool normalizes = true;
  bool sigmoid = false;          // kBias: scores are sigmoids, not a softmax
  double balance_weight = 0.01;  // of the gate's balance loss; kBias has none
  double z_weight = 0;           // of mean(logsumexp^2) (Zoph et al., arXiv:2202.08906, eq. 5)
  double bias_rate = 0.001;      // kBias: change per step
  double jitter = 0;             // kSwitch: multiplies the router's input by U(1 - jitter, 1 + jitter)
  double capacity_factor = 0;    // see Capacity; 0: no row is dropped
};

// INVALID_ARGUMENT, one line that says what was expected, if experts < 1, k is not in [1, experts], k is not 1 for
// kSwitch or not 2 for kGShard, a weight, rate or the capacity factor is negative or not finite, jitter is not in
// [0, 1), or jitter or sigmoid is set for a gate that does not have it.
absl::Status Validate(const GateOptions& options);
// "top-k", "noisy-top-k", "switch", "gshard" or "bias"; INVALID_ARGUMENT, listing them, for another text.
absl::StatusOr<GateKind> ParseGateKind(const std::string& text);
const char* Name(GateKind kind);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_GATE_OPTIONS_H_
