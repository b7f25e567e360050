// --mesh and --nproc of training programs: how many ranks a run has, and along which axes.
//
//   PLAIT_ASSIGN_OR_RETURN(const int ranks, RanksOfRun(nproc, mesh, comm::DetectLauncher(), cores));
//   PLAIT_ASSIGN_OR_RETURN(const std::vector<comm::MeshAxis> axes,
//                          MeshOf(mesh, {.strategy = strategy}, ranks));
//
// A mesh is written "pp=2,dp_replicate=2,dp_shard=2", in any order. ep is not an axis of its own but a view of the data
// ranks: "dp_shard=4,ep=4" distributes experts over the four ranks along dp_shard (parallel/moe/expert_mesh.h). An axis
// that is left out has size 1; -1, for one axis at most, stands for the remaining ranks. Errors are INVALID_ARGUMENT,
// one line that begins with the flag. Local.
#ifndef PLAIT_TOOLS_TRAINING_MESH_H_
#define PLAIT_TOOLS_TRAINING_MESH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "comm/device_mesh.h"
#include "comm/launch/launcher.h"
#include "parallel/sharding/strategy.h"

namespace plait::training {

struct MeshOptions {
  parallel::Strategy strategy = parallel::Strategy::kDdp;
  // Axes that the program supports besides dp_replicate and dp_shard: any of pp, cp, lp, tp and ep.
  std::vector<std::string> axes = {};
  // The axis that gets all ranks if `mesh` is empty. Empty: dp_replicate for ddp, else dp_shard.
  std::string default_axis = {};
};

// Returns the sizes of dp_replicate, dp_shard and the program's axes, in the order pp, dp_replicate, dp_shard, cp, lp,
// tp, the last one varying fastest; ep is checked and not returned (ExpertRanks). An error if the mesh does not parse,
// names an axis that the program does not support, does not multiply to `ranks`, has dp_shard > 1 with ddp, or an ep
// that does not divide the data ranks.
absl::StatusOr<std::vector<comm::MeshAxis>> MeshOf(const std::string& mesh, const MeshOptions& options,
                                                   int ranks);

// Ranks along ep, of a mesh that MeshOf accepts; 1 if it does not name ep.
int ExpertRanks(const std::string& mesh);

inline constexpr int kMostDefaultRanks = 8;

// Number of ranks to start without a launcher: `nproc` if positive, else the product of a mesh without -1, else
// `cores`, at most kMostDefaultRanks.
absl::StatusOr<int> RanksToStart(int nproc, const std::string& mesh, int cores);

// The number of ranks that a launcher has started, else RanksToStart. An error if `nproc` contradicts the launcher.
absl::StatusOr<int> RanksOfRun(int nproc, const std::string& mesh, const comm::Launcher& launcher, int cores);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_MESH_H_
