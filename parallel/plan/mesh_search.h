// What a run needs on a cluster, and which meshes of all its ranks are best.
//
//   PLAIT_ASSIGN_OR_RETURN(const Estimate estimate, EstimateOf(model, run, cluster));
//   estimate.memory.total_bytes(), estimate.time.total(), estimate.fits
//
//   const std::vector<Estimate> ranked = Search(model, base_run, {.samples = 1024}, cluster);   // best first
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
  MemoryPlan memory;  // of the rank of pp that needs most
  StepTime time;
  std::vector<AxisTraffic> traffic;  // of rank 0; empty after Search, see TrafficOf
  bool fits = false;

  std::int64_t samples() const { return run.micro_batches * run.micro_batch * run.mesh.data_ranks(); }
  double samples_per_second() const { return static_cast<double>(samples()) / time.total(); }
};

// Errors of StepPlan::Make; InvalidArgument where the cluster has no FLOP/s of the compute type.
absl::StatusOr<Estimate> EstimateOf(const PlannedModel& model, const PlannedRun& run, const Cluster& cluster);

struct SearchOptions {
  std::int64_t samples = 0;  // of a step, over all ranks and micro-batches
  int ranks = 0;             // 0: the cluster's
  // Empty: all. Those that shard run where there are ranks to share states, ddp where dp_shard is 1.
  std::vector<Strategy> strategies = {};
  int largest_tp = 0;  // 0: the ranks of a node
};

// Every mesh pp x dp_replicate x dp_shard x cp x tp of the ranks that can split the model and the batch, under each
// strategy, with the samples of a step as one micro-batch per data rank, as few samples as pass at once, and powers of
// two between; tp within a node; with tp, sequence parallelism where sequences divide; zero2 and fsdp that do not fit
// otherwise, with gradients reduced after each micro-batch. Those that fit come first, the
// quickest first; then the others, that which lacks least first. What `base` says otherwise stays: types, schedule,
// optimizer. InvalidArgument where no mesh can split model and batch, and where EstimateOf says so.
absl::StatusOr<std::vector<Estimate>> Search(const PlannedModel& model, const PlannedRun& base,
                                             const SearchOptions& options, const Cluster& cluster);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PLAN_MESH_SEARCH_H_
