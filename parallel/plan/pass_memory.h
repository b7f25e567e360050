// Bytes that the parts of a model take in a pass over a micro-batch: measured once for each way to split the layers, by
// running the model on the meta device with simulated ranks (docs/decisions/018-memory-plans-are-dry-runs.md).
//
//   PassMemory memory(model);
//   PLAIT_ASSIGN_OR_RETURN(const PassBytes* const bytes, memory.Of(run));
//   bytes->block.kept;                          // from a block's forward to its backward
//
// Measured on the first rank along tp and cp, which needs no less than the others. Local.
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

// Of one part. Peaks are relative to what was allocated when it began; in backward, to what this part and the earlier
// ones have kept from forward.
struct PartBytes {
  std::int64_t kept = 0;  // from forward to backward, the output included
  std::int64_t forward_peak = 0, backward_peak = 0;
  // A backward in two parts (SplitBackward): kept from the input gradient to the weight gradient.
  std::int64_t kept_for_weights = 0, input_peak = 0, weight_peak = 0;
};

// Without communication buffers, and without gradients of parameters except the one that is being computed.
struct PassBytes {
  PartBytes prologue, block, epilogue;
  std::int64_t hidden = 0;  // the hidden state between blocks
};

class PassMemory {
 public:
  explicit PassMemory(const PlannedModel& model) : model_(model) {}  // `model` must outlive this

  // The result is valid as long as this object. It depends on cp, tp, sequence_parallel, context, compute_type,
  // micro_batch, and whether the schedule splits backward. Errors of tensor_parallel::Parallelize; UNIMPLEMENTED if
  // LibTorch lacks an operator on the meta device.
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
