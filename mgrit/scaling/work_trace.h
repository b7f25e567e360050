// What every rank does in one recorded pass of LayerParallel and its backward, in its order: the solver's cycle, replayed
// without states.
//
//   BatchShape shape = {.solver = MakeLayerParallelOptions(2, 4, 2, 1), .steps = 128, .ranks = 4};
//   std::vector<RankTrace> traces = TraceBatch(shape);       // by rank
//
// Replays mgrit/hierarchy.h and mgrit/layer_parallel (two solves, gradients and their tree sum); the test beside it
// compares steps, kinds of work and messages with those of real solves. Fixed iteration counts only: no tolerance is
// looked at, no solve diverges. Local.
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
  std::int64_t count = 1;               // kWork; kCollective: values of a kNorms
  int peer = 0;                         // kSend, kReceive
  int tag = 0;                          // kSend, kReceive: the messages of a pair and tag keep their order
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
  // Those of the network's TensorStep. No function: 1 for every step.
  std::function<std::int64_t(const StepInterval& interval)> evaluations = {};
  bool linearises_ahead = false;
  // Whether parameters are shared by all steps, so that gradients are summed over ranks.
  bool shares_parameters = true;
  bool wants_input_gradient = false;
};

// The solver fits the steps (LayerParallel::Check).
std::vector<RankTrace> TraceBatch(const BatchShape& shape);

}  // namespace plait::mgrit::scaling

#endif  // PLAIT_MGRIT_SCALING_WORK_TRACE_H_
