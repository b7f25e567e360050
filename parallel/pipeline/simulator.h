// Simulates a schedule: whether it is complete and free of deadlock, how long it takes, and what it keeps in memory.
//
//   PLAIT_ASSIGN_OR_RETURN(const Simulation simulation, Simulate(schedule, {.send = 0.1}));
//   simulation.bubble;             // 0.31 for 1f1b with 4 ranks and 8 micro-batches
//   simulation.most_in_flight[0];  // most micro-batches whose activations rank 0 keeps at a time
//
// A stage's forward waits for that of the previous stage, its backward (B or I) for that of the next stage, each of the
// same micro-batch; sends and receives do not block. The executor follows the same rules, so a schedule that passes
// here does not hang there. Local.
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
  double send = 0;                    // latency of a result of one rank that another rank needs
  std::vector<double> of_stage = {};  // factor of the costs of computation, by stage; empty: 1
};

struct TimedAction {
  Action action;
  double begin = 0, end = 0;
};

struct Simulation {
  double makespan = 0;  // end of the last action of all ranks; the first starts at 0
  // 1 - work / time of the rank with the longest time from its first to its last action (Qi et al., 2024, section 4);
  // this time determines the duration of a step, as the optimizer steps of the ranks need not start together.
  double bubble = 0;
  std::vector<int> most_in_flight = {};  // by rank: most (stage, micro-batch) pairs between F and B or W
  std::vector<std::vector<TimedAction>> timeline = {};
};

// The largest sum of weights[s], such as bytes of activations, over the (stage s, micro-batch) pairs that `rank` keeps
// at a time, between F and B or W.
double MostInFlight(const Schedule& schedule, int rank, const std::vector<double>& weights);

// INVALID_ARGUMENT if an action is missing, occurs twice, belongs to another rank's stage, or precedes an action of its
// rank that it depends on. FAILED_PRECONDITION for a deadlock; the message says what each blocked rank waits for.
absl::StatusOr<Simulation> Simulate(const Schedule& schedule, const ActionCosts& costs = {});

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PIPELINE_SIMULATOR_H_
