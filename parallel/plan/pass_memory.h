// Bytes that the parts of a model take in a pass over a micro-batch: measured, once for each split of the layers, by a
// pass of the model itself on the meta device among counted ranks (docs/decisions/018-memory-plans-are-dry-runs.md).
//
//   PassMemory memory(model);
//   PLAIT_ASSIGN_OR_RETURN(const PassBytes* const bytes, memory.Of(run));
//   bytes->block.kept;                          // from a block's forward to its backward
//
// Of the first rank along tp and cp, which has no less than others. Local.
#ifndef PLAIT_PARALLEL_PLAN_PASS_MEMORY_H_
#define PLAIT_PARALLEL_PLAN_PASS_MEMORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "absl/status/statusor.h"
#include "parallel/plan/planned_model.h"
#include "parallel/plan/traffic.h"

namespace plait::parallel {

// Of one part. Peaks are beyond what was there when it began; in a backward, beyond what the part and those in front
// of it have kept.
struct PartBytes {
  std::int64_t kept = 0;  // from forward to backward, with the result
  std::int64_t forward_peak = 0, backward_peak = 0;
  // A backward in two parts (SplitBackward): kept from the first to the second one.
  std::int64_t kept_for_weights = 0, input_peak = 0, weight_peak = 0;
};

// Without communication and gradients of parameters, but for the one that is being made.
struct PassBytes {
  PartBytes prologue, block, epilogue;
  std::int64_t hidden = 0;  // the state between blocks
};

class PassMemory {
 public:
  explicit PassMemory(const PlannedModel& model) : model_(model) {}  // which outlives this

  // Valid as long as this. Errors of tensor_parallel::Parallelize; Unimplemented where LibTorch lacks an operator on the
  // meta device. The run's micro-batch, type, schedule and attention count, and the mesh's cp and tp.
  absl::StatusOr<const PassBytes*> Of(const PlannedRun& run);

 private:
  using Key = std::tuple<int, int, bool, bool, context_parallel::ContextKind, at::ScalarType, std::int64_t>;
  const PlannedModel& model_;
  std::map<Key, PassBytes> measured_;
};

// Whether the schedule has backward passes in two parts.
bool SplitsBackward(ScheduleKind schedule);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PLAN_PASS_MEMORY_H_
