// Measures what a cluster's file says (parallel/plan/cluster.h) on the ranks that run this.
//
//   PLAIT_ASSIGN_OR_RETURN(const parallel::Cluster cluster, Calibrate(world, sizes));
//
// All ranks measure at the same time, so that what they share is shared; each number is the slowest rank's, of the
// least of several repetitions:
//
//   compute      products of all linear layers of a block, forward and both gradients, in float32 and bfloat16
//   calls        what a block's forward and backward would take for no samples
//   activations  what they take beyond that and their FLOPs at that rate, in both types
//   memory       AdamW's kernel, 28 bytes per float32 parameter
//   links        all-reduce, all-gather and reduce-scatter of 4 KiB (latency) and 16 MiB (bandwidth), within nodes and
//                between the ranks of equal number on all nodes
#ifndef PLAIT_TOOLS_PLAN_PARTS_CALIBRATION_H_
#define PLAIT_TOOLS_PLAN_PARTS_CALIBRATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "comm/communicator.h"
#include "models/block_model.h"
#include "parallel/plan/cluster.h"
#include "parallel/plan/planned_model.h"

namespace plait::planning {

struct CalibrationModel {
  parallel::PlannedModel planned;  // of the model that is to be trained
  // One with so many blocks, in memory.
  std::function<std::unique_ptr<models::BlockModel>(std::int64_t blocks, at::ScalarType type)> make;
  // A batch of so many samples.
  std::function<models::Batch(std::int64_t samples, at::ScalarType type)> batch;
  std::int64_t samples = 1;  // of a micro-batch on a rank
};

// Collective.
absl::StatusOr<parallel::Cluster> Calibrate(const comm::Communicator& world, const CalibrationModel& model);

}  // namespace plait::planning

#endif  // PLAIT_TOOLS_PLAN_PARTS_CALIBRATION_H_
