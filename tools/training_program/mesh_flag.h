// --mesh and --nproc of training programs: how many ranks a run has, and along which axes.
//
//   PLAIT_ASSIGN_OR_RETURN(const int ranks, RanksOfRun(nproc, mesh, comm::DetectLauncher(), cores));
//   PLAIT_ASSIGN_OR_RETURN(const MeshShape shape, MeshOf(mesh, parallel::Strategy::kFsdp, ranks));
//
// A mesh is written "dp_replicate=2,dp_shard=2". An axis that is left out has one rank; -1, for one of them,
// is what is left of the ranks. Errors are InvalidArgument, one line that begins with the flag. Local.
#ifndef PLAIT_TOOLS_TRAINING_PROGRAM_MESH_FLAG_H_
#define PLAIT_TOOLS_TRAINING_PROGRAM_MESH_FLAG_H_

#include <string>

#include "absl/status/statusor.h"
#include "comm/launch/launcher.h"
#include "parallel/sharding/strategy.h"

namespace plait::training_program {

// Ranks along the two axes of data parallelism.
struct MeshShape {
  int dp_replicate = 1;
  int dp_shard = 1;

  int ranks() const { return dp_replicate * dp_shard; }
};

// Empty: ddp replicates over all ranks, other strategies shard over all. An error where the mesh cannot be
// read, does not multiply to `ranks`, or shards under ddp, which keeps everything whole.
absl::StatusOr<MeshShape> MeshOf(const std::string& mesh, parallel::Strategy strategy, int ranks);

inline constexpr int kMostDefaultRanks = 8;

// Ranks to start where no launcher did: `nproc`, else (0) those of a mesh without -1, else one for each of
// `cores`, at most kMostDefaultRanks.
absl::StatusOr<int> RanksToStart(int nproc, const std::string& mesh, int cores);

// Those that a launcher has started, else RanksToStart. An error where `nproc` says otherwise than the
// launcher.
absl::StatusOr<int> RanksOfRun(int nproc, const std::string& mesh, const comm::Launcher& launcher, int cores);

}  // namespace plait::training_program

#endif  // PLAIT_TOOLS_TRAINING_PROGRAM_MESH_FLAG_H_
