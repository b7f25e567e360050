// Sizes and routing of a mixture of experts in place of a block's multilayer perceptron.
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
  GateOptions gate = {};    // without experts: no mixture
  std::int64_t hidden = 0;  // of each expert
  Activation activation = Activation::kGelu;
  bool gated = false;
  bool bias = true;                // of experts
  std::int64_t shared_hidden = 0;  // of an expert that every token goes through; 0: none
  int chunks = 1;                  // parallel/moe/layer.h
  PlannerOptions planner = {};     // of replicas; weights and results do not depend on it

  bool used() const { return gate.experts > 0; }
  friend bool operator==(const MoeOptions& a, const MoeOptions& b);
};

// InvalidArgument, one line that says what was expected; OK where it is not used.
absl::Status Validate(const MoeOptions& options);

// Of a layer with `experts` of its experts, its router and its shared expert.
std::int64_t ParameterCount(const MoeOptions& options, std::int64_t width, std::int64_t experts);

}  // namespace plait::moe

#endif  // PLAIT_MODELS_MOE_OPTIONS_H_
