// What every rank does in one batch, in its order: the solver's cycle, replayed without states.
//
//   BatchShape shape = {.setting = setting, .steps = 128, .ranks = 4};
//   std::vector<RankTrace> traces = TraceBatch(shape);       // by rank
//
// Replays mgrit/hierarchy.h, mgrit/layer_parallel (two solves, the tree sum of gradients) and the GRU's step;
// the test beside it compares steps, kinds of work and messages with those of real solves. Fixed iteration
// counts only: no tolerance is looked at. Local.
#ifndef PLAIT_TESTS_BENCHMARKS_WORK_TRACE_H_
#define PLAIT_TESTS_BENCHMARKS_WORK_TRACE_H_

#include <cstdint>
#include <vector>

#include "mgrit/grid.h"
#include "tests/benchmarks/setting.h"
#include "tests/benchmarks/work_kind.h"

namespace plait::benchmarks {

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
  Setting setting;
  std::int64_t steps = 128;
  int ranks = 1;
};

// The setting fits the steps (mgrit::LayerParallel::Check).
std::vector<RankTrace> TraceBatch(const BatchShape& shape);

}  // namespace plait::benchmarks

#endif  // PLAIT_TESTS_BENCHMARKS_WORK_TRACE_H_
