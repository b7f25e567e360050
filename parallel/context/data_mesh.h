// The mesh on which parameters are replicated and sharded where ranks have parts of sequences.
//
//   PLAIT_ASSIGN_OR_RETURN(const comm::DeviceMesh mesh, DataMesh(whole_mesh, strategy));
//   ... DataParallel::Create(mesh, model.units(), {.strategy = strategy});
//
// Ranks along cp use the same parameters for different tokens, as data-parallel ranks do. So cp becomes a part of
// dp_shard, which shards states over these ranks too and reduce-scatters gradients once, or of dp_replicate under
// ddp. Attention keeps the axis of the whole mesh.
#ifndef PLAIT_PARALLEL_CONTEXT_DATA_MESH_H_
#define PLAIT_PARALLEL_CONTEXT_DATA_MESH_H_

#include "absl/status/statusor.h"
#include "comm/device_mesh.h"
#include "parallel/sharding/strategy.h"

namespace plait::context_parallel {

// The axis that cp becomes a part of: "dp_replicate" or "dp_shard".
const char* DataAxis(parallel::Strategy strategy);

// Collective. The same mesh where it has no cp of several ranks. Errors of DeviceMesh::Fold.
absl::StatusOr<comm::DeviceMesh> DataMesh(const comm::DeviceMesh& mesh, parallel::Strategy strategy);

}  // namespace plait::context_parallel

#endif  // PLAIT_PARALLEL_CONTEXT_DATA_MESH_H_
