#include "parallel/context/data_mesh.h"

#include <string>

namespace plait::context_parallel {

const char* DataAxis(parallel::Strategy strategy) {
  return strategy == parallel::Strategy::kDdp ? "dp_replicate" : "dp_shard";
}

absl::StatusOr<comm::DeviceMesh> DataMesh(const comm::DeviceMesh& mesh, parallel::Strategy strategy) {
  if (!mesh.Has("cp") || mesh.axis("cp").size() == 1) return mesh;
  const std::string axis = DataAxis(strategy);
  const int data = mesh.Has(axis) ? mesh.axis(axis).size() : 1;
  if (!mesh.Has(axis)) return mesh.Fold({"cp"}, {{axis, mesh.axis("cp").size()}});
  return mesh.Fold({axis, "cp"}, {{axis, data * mesh.axis("cp").size()}});
}

}  // namespace plait::context_parallel
