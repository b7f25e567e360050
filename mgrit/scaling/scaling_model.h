// A model of scaling: what a step, a message and the rest cost on one rank -> seconds per batch on P ranks.
//
//   Costs costs = ...;                          // measured: LayerParallel::work_times, message_costs.h
//   double seconds = PredictBatch({.solver = options, .steps = 1024, .ranks = 64}, costs, {.cores = 64});
//
// For networks of any blocks (BatchShape). The work of every rank (work_trace.h) is played through against clocks: a rank
// computes, sends without waiting but for its previous message of the same tag, waits for what it receives, and takes
// part in collectives, whose trees cost ceil(log2 ranks) messages. Ranks that compute at the same time share the cores.
// So relaxation runs in parallel, the coarsest level's chain from rank to rank does not, and both follow from the trace
// instead of from a formula. Local.
#ifndef PLAIT_MGRIT_SCALING_SCALING_MODEL_H_
#define PLAIT_MGRIT_SCALING_SCALING_MODEL_H_

#include <cstdint>

#include "mgrit/layer_parallel/work_times.h"
#include "mgrit/scaling/work_trace.h"

namespace plait::mgrit::scaling {

// Seconds on one rank that has a core for itself.
struct Costs {
  WorkSeconds work;    // of one piece; kinds that were not measured as MeasuredOrLike says
  double input = 0;    // per step of level 0, on every rank: of what a network's inputs need
  double head = 0;     // per batch, on every rank
  double solver = 0;   // besides Phi, per evaluation
  double sum = 0;      // besides the gradients themselves, per step of level 0
  double latency = 0;  // of a message
  double byte = 0;     // per byte of a message
  double state_bytes = 0;
  double gradient_bytes = 0;
};

struct Machine {
  int cores = 1;
  double contention = 1;  // how much slower a core is when others compute too
  // Where ranks share cores: from the message that a sleeping rank waits for to its next work.
  double hand_over = 0;
};

// Kinds without a time of their own get that of the nearest kind that has one.
WorkSeconds MeasuredOrLike(WorkSeconds seconds);

// From the barrier before a batch to the end of its gradients on the slowest rank.
double PredictBatch(const BatchShape& shape, const Costs& costs, const Machine& machine);

}  // namespace plait::mgrit::scaling

#endif  // PLAIT_MGRIT_SCALING_SCALING_MODEL_H_
