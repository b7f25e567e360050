// Expert-parallel axes: a second view of the data ranks, as groups that share the experts.
//
//   PLAIT_ASSIGN_OR_RETURN(const comm::DeviceMesh mesh, ExpertMesh(data_mesh, /*ep=*/4));
//
// Data ranks are those along dp_replicate and dp_shard, into which cp is folded (parallel/context/data_mesh.h). Each
// group of `ep` consecutive ones has all experts. Axes that are added to the others:
//   tokens                  all data ranks, over which a batch's tokens are distributed
//   ep                      the ranks of a group, each with different experts
//   ep_replicate, ep_shard  ranks with the same experts, which replicate and shard them as dp_replicate and dp_shard do
//                           dense parameters
// Units of experts name ep_replicate and ep_shard as their axes; dense units do not change. Each coordinate along tp
// and pp has its own groups.
#ifndef PLAIT_PARALLEL_MOE_EXPERT_MESH_H_
#define PLAIT_PARALLEL_MOE_EXPERT_MESH_H_

#include "absl/status/statusor.h"
#include "comm/device_mesh.h"

namespace plait::moe {

// Collective over the mesh. INVALID_ARGUMENT, the same on all ranks, if the mesh has neither dp_replicate nor dp_shard,
// or if `ep` neither divides the ranks along dp_shard nor is a multiple of them that divides all data ranks.
absl::StatusOr<comm::DeviceMesh> ExpertMesh(const comm::DeviceMesh& data_mesh, int ep);

// Local. Sizes of ep_replicate and ep_shard. INVALID_ARGUMENT as ExpertMesh.
struct ExpertAxes {
  int replicate = 1, shard = 1;
};
absl::StatusOr<ExpertAxes> ExpertAxesOf(int dp_replicate, int dp_shard, int ep);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_EXPERT_MESH_H_
