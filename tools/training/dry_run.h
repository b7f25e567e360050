// A training step of any mesh in one process: on the meta device, among ranks that are only counted.
//
//   const auto ranks = DryRun(settings, {{"pp", 8}, {"dp_shard", 64}, {"tp", 8}}, make);
//   std::cout << DryRunText(*ranks);
//
// The model, the engine, the pipeline and the optimizer are those of a real run (sharded_model.h); tensors have sizes
// and no memory, collectives return at once (comm/counting). Each rank that may differ from others is run by itself:
// every stage of pp, with the first and the last rank of cp and of tp. Ranks along dp_replicate and dp_shard are
// alike, as shards are padded to one size.
#ifndef PLAIT_TOOLS_TRAINING_DRY_RUN_H_
#define PLAIT_TOOLS_TRAINING_DRY_RUN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "comm/device_mesh.h"
#include "comm/stats.h"
#include "models/block_model.h"
#include "tools/training/settings.h"
#include "tools/training/sharded_model.h"

namespace plait::training {

// Of one rank.
struct DryRunModel {
  std::shared_ptr<models::BlockModel> model;  // on the meta device, whole
  TrainedModel trained;                       // of this model
  models::Batch batch;                        // a micro-batch of so many samples, on the meta device
};
using MakeDryRunModel = std::function<absl::StatusOr<DryRunModel>(std::int64_t samples)>;

struct DryRunRank {
  int rank = 0;
  std::vector<int> coordinates;
  int alike = 1;  // ranks that it stands for, itself among them
  // Of tensors, in bytes: what stays between steps, and the most that a step takes besides.
  std::int64_t parameter_bytes = 0;  // and masters
  std::int64_t moment_bytes = 0;
  std::int64_t gradient_bytes = 0;    // and buffers of unsharded units
  std::int64_t activation_bytes = 0;  // with whatever else lives only within a step
  comm::Stats traffic;                // of a step, by axis

  std::int64_t peak_bytes() const {
    return parameter_bytes + moment_bytes + gradient_bytes + activation_bytes;
  }
};

struct DryRunResult {
  std::vector<comm::MeshAxis> axes;
  std::vector<DryRunRank> ranks;  // in order
  double seconds = 0;
};

// The ranks of `axes`, of which `rank` is one, as they are counted: also with the groups of a training program.
comm::Communicator CountedWorld(const Settings& settings, const std::vector<comm::MeshAxis>& axes, int rank);

// The rank that is run in place of `rank`.
int RankToRun(const std::vector<comm::MeshAxis>& axes, int rank);

// Errors of SplitLayers and ShardedModel::Create. Local.
absl::StatusOr<DryRunResult> DryRun(const Settings& settings, const std::vector<comm::MeshAxis>& axes,
                                    const MakeDryRunModel& make);

// The memory plan of this rank of a real mesh, whose activations and unsharded units are those of a dry run. `trained`
// is split already (SplitLayers). Errors of DryRun. Local.
absl::StatusOr<parallel::MemoryPlan> PlanByDryRun(const Settings& settings, const comm::DeviceMesh& mesh,
                                                  at::Device device, const TrainedModel& trained,
                                                  const MakeDryRunModel& make);

// ResourceExhausted where a rank takes more than `limit`.
absl::Status CheckFits(const DryRunResult& result, const parallel::NodeMemory& limit);

// A table: a line for each rank that was run.
std::string DryRunText(const DryRunResult& result);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_DRY_RUN_H_
