// The events of every rank in one recorded pass of LayerParallel and its backward, in order: the solver's cycles,
// replayed without states.
//
//   BatchShape shape = {.solver = MakeLayerParallelOptions(2, 4, 2, 1), .steps = 128, .ranks = 4};
//   std::vector<RankTrace> traces = TraceBatch(shape);       // by rank
//
// Replays mgrit/hierarchy.h and mgrit/layer_parallel: two solves, gradients and their tree sum. work_trace_test
// compares steps, kinds of work and messages with those of real solves. Assumes max_iterations iterations: tolerances
// and divergence are ignored, as are Options::coarse_window, delta_rank and periodic. Local.
#ifndef PLAIT_MGRIT_SCALING_WORK_TRACE_H_
#define PLAIT_MGRIT_SCALING_WORK_TRACE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "mgrit/layer_parallel/layer_parallel.h"
#include "mgrit/layer_parallel/work_times.h"
#include "mgrit/problem.h"

namespace plait::mgrit::scaling {

enum class Payload { kNothing, kState, kGradient, kNorms };

struct Event {
  enum class Type { kWork, kSend, kReceive, kFinishSends, kCollective };
  Type type = Type::kWork;
  WorkKind work = WorkKind::kFineStep;  // kWork
  std::int64_t count = 1;               // kWork: evaluations; kCollective: number of norms of a kNorms
  int peer = 0;                         // kSend, kReceive
  int tag = 0;                          // kSend, kReceive: messages of one pair and tag are ordered
  Payload payload = Payload::kNothing;
};

struct RankTrace {
  std::vector<Event> events;
  std::vector<std::int64_t> forward_steps;   // per level
  std::vector<std::int64_t> backward_steps;  // per level
  WorkCounts work;
  std::int64_t forward_messages = 0;  // sent in the solves
  std::int64_t backward_messages = 0;
};

struct BatchShape {
  LayerParallelOptions solver;
  std::int64_t steps = 128;
  int ranks = 1;
  Propagation propagation = Propagation::kParallel;
  // TensorStep::Evaluations and LinearisesAhead of the network's step. Empty: 1 evaluation for every step.
  std::function<std::int64_t(const StepInterval& interval)> evaluations = {};
  bool linearises_ahead = false;
  // Whether all steps share parameters, so that gradients are summed over ranks.
  bool shares_parameters = true;
  bool wants_input_gradient = false;
};

// Returns the traces by rank. `shape.solver` must fit the steps (LayerParallel::Check).
std::vector<RankTrace> TraceBatch(const BatchShape& shape);

}  // namespace plait::mgrit::scaling

#endif  // PLAIT_MGRIT_SCALING_WORK_TRACE_H_
