// --mesh and --nproc of training programs: how many ranks a run has, and along which axes.
//
//   PLAIT_ASSIGN_OR_RETURN(const int ranks, RanksOfRun(nproc, mesh, comm::DetectLauncher(), cores));
//   PLAIT_ASSIGN_OR_RETURN(const std::vector<comm::MeshAxis> axes,
//                          MeshOf(mesh, {.strategy = strategy}, ranks));
//
// A mesh is written "pp=2,dp_replicate=2,dp_shard=2", in any order. ep takes no ranks of its own: "dp_shard=4,ep=4"
// spreads experts over the four ranks along dp_shard (parallel/moe/expert_mesh.h). An axis that is left out has one rank;
// -1, for one axis, stands for the remaining ranks. Errors are InvalidArgument, one line that begins with the
// flag. Local.
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
  // Axes that the program can use besides dp_replicate and dp_shard: of pp, cp, lp, tp and ep.
  std::vector<std::string> axes = {};
  // That has all ranks without a mesh. Empty: dp_replicate under ddp, else dp_shard.
  std::string default_axis = {};
};

// dp_replicate, dp_shard and the axes of the program, in the order pp, dp_replicate, dp_shard, cp, lp, tp, the
// last one fastest. Without a mesh all ranks are on the program's default axis. An error where the mesh cannot be read, names an axis that the program lacks, does not
// multiply to `ranks`, shards under ddp, or has groups of experts that do not divide the data ranks.
absl::StatusOr<std::vector<comm::MeshAxis>> MeshOf(const std::string& mesh, const MeshOptions& options,
                                                   int ranks);

// Ranks along ep, of a mesh that MeshOf has read; 1 where it is not named.
int ExpertRanks(const std::string& mesh);

inline constexpr int kMostDefaultRanks = 8;

// Ranks to start where no launcher did: `nproc`, else (0) those of a mesh without -1, else one for each of
// `cores`, at most kMostDefaultRanks.
absl::StatusOr<int> RanksToStart(int nproc, const std::string& mesh, int cores);

// Those that a launcher has started, else RanksToStart. An error where `nproc` contradicts the launcher.
absl::StatusOr<int> RanksOfRun(int nproc, const std::string& mesh, const comm::Launcher& launcher, int cores);

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_MESH_H_
