// The mesh of experts: the data ranks seen a second time, as groups that have all experts together.
//
//   PLAIT_ASSIGN_OR_RETURN(const comm::DeviceMesh mesh, ExpertMesh(data_mesh, /*ep=*/4));
//
// Data ranks are those along dp_replicate and dp_shard, into which cp is folded (parallel/context/data_mesh.h). `ep`
// consecutive ones share a set of experts. New axes beside the others:
//   tokens                 all data ranks: those that have a batch's tokens
//   ep                     the ranks of a group: each has other experts
//   ep_replicate, ep_shard ranks with the same experts, in place of dp_replicate and dp_shard: they replicate and shard them
// Dense parameters go on as before; units of experts name ep_replicate and ep_shard. Every rank along tp and pp has groups of
// its own.
#ifndef PLAIT_PARALLEL_MOE_EXPERT_MESH_H_
#define PLAIT_PARALLEL_MOE_EXPERT_MESH_H_

#include "absl/status/statusor.h"
#include "comm/device_mesh.h"

namespace plait::moe {

// Collective. InvalidArgument, the same on all ranks, where `ep` neither divides the ranks along dp_shard nor is a multiple of
// them that divides all data ranks.
absl::StatusOr<comm::DeviceMesh> ExpertMesh(const comm::DeviceMesh& data_mesh, int ep);

// Sizes of ep_replicate and ep_shard; errors as ExpertMesh. Local.
struct ExpertAxes {
  int replicate = 1, shard = 1;
};
absl::StatusOr<ExpertAxes> ExpertAxesOf(int dp_replicate, int dp_shard, int ep);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_EXPERT_MESH_H_
