// Estimates memory and time of a run on a cluster, and searches for the best mesh of all its ranks.
//
//   PLAIT_ASSIGN_OR_RETURN(const Estimate estimate, EstimateOf(model, run, cluster));
//   estimate.memory.total_bytes(), estimate.time.total(), estimate.fits
//
//   PLAIT_ASSIGN_OR_RETURN(const std::vector<Estimate> ranked,
//                          Search(model, base_run, {.samples = 1024}, cluster));   // best first
//
// Local.
#ifndef PLAIT_PARALLEL_PLAN_MESH_SEARCH_H_
#define PLAIT_PARALLEL_PLAN_MESH_SEARCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "parallel/plan/cluster.h"
#include "parallel/plan/memory_plan.h"
#include "parallel/plan/planned_model.h"
#include "parallel/plan/step_time.h"
#include "parallel/plan/traffic.h"

namespace plait::parallel {

struct Estimate {
  PlannedRun run;
  MemoryPlan memory;  // of the rank of pp that needs the most
  StepTime time;
  std::vector<AxisTraffic> traffic;  // of rank 0; empty after Search, see TrafficOf
  bool fits = false;

  // Of a step, over all data ranks.
  std::int64_t samples() const {
    return run.step_samples > 0 ? run.step_samples
                                : run.micro_batches * run.micro_batch * run.mesh.data_ranks();
  }
  double samples_per_second() const { return static_cast<double>(samples()) / time.total(); }
};

// Errors of StepPlan::Make and PassMemory::Of; INVALID_ARGUMENT if cluster.flops lacks the compute type.
absl::StatusOr<Estimate> EstimateOf(const PlannedModel& model, const PlannedRun& run, const Cluster& cluster);

struct SearchOptions {
  std::int64_t samples = 0;  // per step, over all ranks and micro-batches; must be positive
  int ranks = 0;             // 0: the cluster's
  // Empty: all. Sharding strategies are tried only if dp_shard or cp has several ranks, ddp only if dp_shard is 1.
  std::vector<Strategy> strategies = {};
  int largest_tp = 0;  // 0: the ranks of a node
};

// Estimates every mesh pp x dp_replicate x dp_shard x cp x tp of the ranks that can split the model and the batch, with
// each strategy and each micro-batch size: the powers of two that divide a data rank's samples, and all its samples.
// tp is limited to a node. Skipped are runs with fewer micro-batches than stages, and cp that would pad sequences. With
// tp, sequence parallelism is used if sequences divide; zero2 and fsdp reduce gradients after each micro-batch if they
// do not fit otherwise. Runs that fit come first, fastest first; then the others, least memory first. Other settings
// are taken from `base`: types, schedule, optimizer. INVALID_ARGUMENT if no run remains, or if cluster.flops lacks the
// compute type.
absl::StatusOr<std::vector<Estimate>> Search(const PlannedModel& model, const PlannedRun& base,
                                             const SearchOptions& options, const Cluster& cluster);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PLAN_MESH_SEARCH_H_
