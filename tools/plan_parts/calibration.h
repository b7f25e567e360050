// Measures the rates of a cluster file (parallel/plan/cluster.h) on the ranks of this job.
//
//   PLAIT_ASSIGN_OR_RETURN(const parallel::Cluster cluster, Calibrate(world, sizes));
//
// All ranks measure at the same time, so that shared resources are contended as in training. Each time is the minimum
// of several repetitions on a rank, and the maximum of these over ranks:
//
//   compute      matrix products of all linear layers of a block, forward and both gradients, in float32 and bfloat16
//   calls        time of a block's forward and backward extrapolated to zero samples, in float32
//   activations  the remaining time of a block's forward and backward, per byte of activations, in both types
//   memory       AdamW's kernel, 28 bytes per float32 parameter
//   links        all-reduce, all-gather and reduce-scatter of 4 KiB (latency) and 16 MiB (bandwidth), within nodes and
//                between ranks with the same local number on all nodes
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
  parallel::PlannedModel planned;  // the model that is to be trained
  // Makes a model with `blocks` blocks, in memory.
  std::function<std::unique_ptr<models::BlockModel>(std::int64_t blocks, at::ScalarType type)> make;
  // Makes a batch of `samples` samples.
  std::function<models::Batch(std::int64_t samples, at::ScalarType type)> batch;
  std::int64_t samples = 1;  // per micro-batch and rank
};

// Collective over `world`. INVALID_ARGUMENT if nodes have different numbers of ranks, or more of them than
// processors; errors of parallel::PassMemory.
absl::StatusOr<parallel::Cluster> Calibrate(const comm::Communicator& world, const CalibrationModel& model);

}  // namespace plait::planning

#endif  // PLAIT_TOOLS_PLAN_PARTS_CALIBRATION_H_
