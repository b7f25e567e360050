// A dry run: a training step of any mesh in one process, on the meta device, with a communicator that only counts.
//
//   PLAIT_ASSIGN_OR_RETURN(const DryRunResult result,
//                          DryRun(settings, {{"pp", 8}, {"dp_shard", 64}, {"tp", 8}}, make));
//   std::cout << DryRunText(result);
//
// The model, the engine, the pipeline and the optimizer are those of a real run (sharded_model.h); tensors have sizes
// and no memory, collectives return at once (comm/counting). One rank of each group of equal ranks is run: every
// position along pp and lp, and the first and the last along cp and tp. Ranks along dp_replicate and dp_shard are
// equal, as shards are padded to one size. Where ep does not divide the experts, some of these ranks have one more: the
// last one is run, which has as many as any other.
#ifndef PLAIT_TOOLS_TRAINING_DRY_RUN_H_
#define PLAIT_TOOLS_TRAINING_DRY_RUN_H_

#include <algorithm>
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

// The model of one rank. MakeDryRunModel makes it for micro-batches, or batches of a test, of `samples` samples.
struct DryRunModel {
  std::shared_ptr<models::BlockModel> model;  // whole, on the meta device
  TrainedModel trained;                       // its `model` is the one above
  models::Batch batch;                        // a micro-batch, on the meta device
};
using MakeDryRunModel = std::function<absl::StatusOr<DryRunModel>(std::int64_t samples)>;

struct DryRunRank {
  int rank = 0;
  std::vector<int> coordinates;
  int alike = 1;  // number of ranks that it stands for, itself included
  // Bytes of tensors: the first three live between steps, the others are peaks beyond them.
  std::int64_t parameter_bytes = 0;  // includes masters
  std::int64_t moment_bytes = 0;
  std::int64_t gradient_bytes = 0;                            // includes buffers of unsharded units
  std::int64_t activation_bytes = 0;                          // of a step, with all its other temporaries
  std::int64_t evaluation_samples = 0, evaluation_bytes = 0;  // of a test's largest batch; 0: no tests
  comm::Stats traffic;                                        // sent in a step, by axis

  std::int64_t most_activation_bytes() const { return std::max(activation_bytes, evaluation_bytes); }
  std::int64_t peak_bytes() const {
    return parameter_bytes + moment_bytes + gradient_bytes + most_activation_bytes();
  }
};

struct DryRunResult {
  std::vector<comm::MeshAxis> axes;
  std::vector<DryRunRank> ranks;  // in order
  double seconds = 0;
};

// The counting world communicator of `rank` in a mesh with these axes; knows the groups that training programs make.
comm::Communicator CountedWorld(const Settings& settings, const std::vector<comm::MeshAxis>& axes, int rank);

// The rank whose dry run stands for `rank`. `expert_ranks`: Settings::expert_ranks().
int RankToRun(const std::vector<comm::MeshAxis>& axes, int expert_ranks, int rank);

// Runs two steps on each rank that differs from others, of which the second is measured, and the largest batch of a
// test (TrainedModel::evaluation_samples). Errors of `make`, SplitLayers and ShardedModel::Create; UNIMPLEMENTED if an
// operator has no kernel for the meta device. Local.
absl::StatusOr<DryRunResult> DryRun(const Settings& settings, const std::vector<comm::MeshAxis>& axes,
                                    const MakeDryRunModel& make);

// The memory plan of this rank of a real mesh, with activations, moments and unsharded units taken from a dry run; with
// --offload, moments and unsharded units are those of the formulas. `trained` must have been split (SplitLayers).
// Errors of DryRun. Local.
absl::StatusOr<parallel::MemoryPlan> PlanByDryRun(const Settings& settings, const comm::DeviceMesh& mesh,
                                                  at::Device device, const TrainedModel& trained,
                                                  const MakeDryRunModel& make);

// RESOURCE_EXHAUSTED if a rank's peak exceeds `limit`.
absl::Status CheckFits(const DryRunResult& result, const parallel::NodeMemory& limit);

// A table with a row for each rank that was run; "activations" are the peak of a step or, if that is higher, of a test.
std::string DryRunText(const DryRunResult& result);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_DRY_RUN_H_
