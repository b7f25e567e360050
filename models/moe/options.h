// Options of a mixture of experts in place of a block's MLP.
#ifndef PLAIT_MODELS_MOE_OPTIONS_H_
#define PLAIT_MODELS_MOE_OPTIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "models/rowwise/activation_kind.h"
#include "parallel/moe/gate_options.h"
#include "parallel/moe/planner.h"

namespace plait::moe {

using rowwise::Activation;

struct MoeOptions {
  GateOptions gate = {};    // gate.experts == 0: no mixture of experts
  std::int64_t hidden = 0;  // hidden width of each expert
  Activation activation = Activation::kGelu;
  bool gated = false;
  bool bias = true;                // of experts, the shared one too
  std::int64_t shared_hidden = 0;  // width of the shared expert; 0: none
  int chunks = 1;                  // parallel/moe/layer.h
  PlannerOptions planner = {};     // of replicas; results do not depend on it

  bool used() const { return gate.experts > 0; }
  // Compares what defines the model: everything but `chunks` and `planner`.
  friend bool operator==(const MoeOptions& a, const MoeOptions& b);
};

// InvalidArgument if an option is out of range. OK if no mixture is used.
absl::Status Validate(const MoeOptions& options);

// Number of parameters of a layer: router, shared expert and `experts` of its experts.
std::int64_t ParameterCount(const MoeOptions& options, std::int64_t width, std::int64_t experts);

}  // namespace plait::moe

#endif  // PLAIT_MODELS_MOE_OPTIONS_H_
