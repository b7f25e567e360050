// Scaling model: predicts the seconds per batch on P ranks from the costs of steps and messages.
//
//   Costs costs = ...;                          // measured: LayerParallel::work_times, message_costs.h
//   double seconds = PredictBatch({.solver = options, .steps = 1024, .ranks = 64}, costs, {.cores = 64});
//
// For networks of any blocks (BatchShape). Simulates the events of every rank (work_trace.h) in time: a rank computes;
// sends, waiting only for its previous message with the same receiver and tag; waits for what it receives; and takes
// part in collectives, which cost ceil(log2 ranks) messages. Ranks that compute at the same time share the cores. That
// relaxation runs in parallel while the coarsest level is a chain from rank to rank thus follows from the trace. Local.
#ifndef PLAIT_MGRIT_SCALING_SCALING_MODEL_H_
#define PLAIT_MGRIT_SCALING_SCALING_MODEL_H_

#include <cstdint>

#include "mgrit/layer_parallel/work_times.h"
#include "mgrit/scaling/work_trace.h"

namespace plait::mgrit::scaling {

// Seconds on one rank with a core of its own.
struct Costs {
  WorkSeconds work;    // per evaluation, kGradient per step; kinds not measured: see MeasuredOrLike
  double input = 0;    // input layers, on every rank: per step of level 0
  double head = 0;     // prologue and head, on every rank: per batch
  double solver = 0;   // solver overhead per evaluation
  double sum = 0;      // summation of gradients, per step of level 0
  double latency = 0;  // per message
  double byte = 0;     // per byte of a message
  double state_bytes = 0;
  double gradient_bytes = 0;
};

struct Machine {
  int cores = 1;
  double contention = 1;  // factor by which a core is slower while others compute
  // With more ranks than cores: seconds from the arrival of a message to the work of the rank that slept for it.
  double hand_over = 0;
};

// Fills kinds without a time with that of the most similar kind; not kGradient. PredictBatch does not call it.
WorkSeconds MeasuredOrLike(WorkSeconds seconds);

// Seconds from a barrier before the batch to the end of its gradients on the slowest rank.
double PredictBatch(const BatchShape& shape, const Costs& costs, const Machine& machine);

}  // namespace plait::mgrit::scaling

#endif  // PLAIT_MGRIT_SCALING_SCALING_MODEL_H_
