// Which gate a mixture of experts has, and its numbers: gate.h says what they do.
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
  // kTopK, kNoisyTopK and kBias: weights of a token sum to 1. Not with k = 1, where the weight would be the
  // constant 1 and the router would not learn.
  bool normalizes = true;
  bool sigmoid = false;          // kBias: scores are sigmoids, not a softmax
  double balance_weight = 0.01;  // of the gate's own balance loss; kBias has none
  double z_weight = 0;           // of mean(logsumexp^2) (Zoph et al., arXiv:2202.08906, eq. 5)
  double bias_rate = 0.001;      // kBias: of a step
  double jitter = 0;             // kSwitch: the router's inputs times U(1 - jitter, 1 + jitter); see Jitter
  double capacity_factor = 0;    // of Capacity; 0: no row is dropped
};

// INVALID_ARGUMENT, one line that says what was expected: k above the experts or not positive, switch with
// another k than 1, GShard with another than 2, negative weights and rates, options of another gate.
absl::Status Validate(const GateOptions& options);
// "top-k", "noisy-top-k", "switch", "gshard", "bias"; INVALID_ARGUMENT that lists them for another text.
absl::StatusOr<GateKind> ParseGateKind(const std::string& text);
const char* Name(GateKind kind);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_GATE_OPTIONS_H_
