// The mesh over which parameters are replicated and sharded under context parallelism.
//
//   PLAIT_ASSIGN_OR_RETURN(const comm::DeviceMesh mesh, DataMesh(whole_mesh, strategy));
//   ... DataParallel::Create(mesh, model.units(), {.strategy = strategy});
//
// Ranks along cp use the same parameters for different tokens, as data-parallel ranks do. So cp is folded into
// dp_shard, which then shards states over these ranks too and reduce-scatters gradients once; under ddp, into
// dp_replicate. Attention uses the cp axis of the original mesh.
#ifndef PLAIT_PARALLEL_CONTEXT_DATA_MESH_H_
#define PLAIT_PARALLEL_CONTEXT_DATA_MESH_H_

#include "absl/status/statusor.h"
#include "comm/device_mesh.h"
#include "parallel/sharding/strategy.h"

namespace plait::context_parallel {

// The axis that cp is folded into: "dp_replicate" for ddp, else "dp_shard".
const char* DataAxis(parallel::Strategy strategy);

// Collective. Returns `mesh` itself if it has no cp axis of several ranks. Errors are those of DeviceMesh::Fold.
absl::StatusOr<comm::DeviceMesh> DataMesh(const comm::DeviceMesh& mesh, parallel::Strategy strategy);

}  // namespace plait::context_parallel

#endif  // PLAIT_PARALLEL_CONTEXT_DATA_MESH_H_
