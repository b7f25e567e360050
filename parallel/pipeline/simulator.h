// Runs a schedule on paper: whether it is complete and free of deadlock, how long it takes and what it keeps.
//
//   PLAIT_ASSIGN_OR_RETURN(const Simulation simulation, Simulate(schedule, {.send = 0.1}));
//   simulation.bubble;             // 0.27: of the longest rank's time
//   simulation.most_in_flight[0];  // micro-batches whose activations rank 0 keeps at a time
//
// A stage's forward waits for that of the stage before, its backward (B or I) for that of the stage behind,
// each of the same micro-batch; sends and receives do not block. The executor works by the same rules, so a
// schedule that passes here does not hang there. Local.
#ifndef PLAIT_PARALLEL_PIPELINE_SIMULATOR_H_
#define PLAIT_PARALLEL_PIPELINE_SIMULATOR_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "parallel/pipeline/schedule.h"

namespace plait::parallel {

// In any unit of time. B takes the time of I and W.
struct ActionCosts {
  double forward = 1, input_gradient = 1, weight_gradient = 1;
  double send = 0;                       // from the end of an action to another rank's reading of its result
  std::vector<double> of_stage = {};  // factors of the above; empty: 1 for each stage
};

struct TimedAction {
  Action action;
  double begin = 0, end = 0;
};

struct Simulation {
  double makespan = 0;  // from the first action of all ranks to the last one
  // 1 - work / time of the rank that takes longest, from its first action to its last one (Qi et al., 2024,
  // section 4): with one optimizer step per rank that is what a step costs.
  double bubble = 0;
  std::vector<int> most_in_flight = {};  // by rank: stages x micro-batches, from F to B or W
  std::vector<std::vector<TimedAction>> timeline = {};
};

// Most of what `rank` keeps at a time, from F to B or W, where a micro-batch on stage s counts `weights[s]`: bytes of
// activations, say.
double MostInFlight(const Schedule& schedule, int rank, const std::vector<double>& weights);

// InvalidArgument where an action is missing, there twice, on another rank's stage or before one that it
// follows on its rank; FailedPrecondition for a deadlock: each rank that is stuck, and for what it waits.
absl::StatusOr<Simulation> Simulate(const Schedule& schedule, const ActionCosts& costs = {});

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PIPELINE_SIMULATOR_H_
