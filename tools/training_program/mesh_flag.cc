#include "tools/training_program/mesh_flag.h"

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace plait::training_program {
namespace {

constexpr char kForm[] = "expected axes and sizes such as dp_replicate=2,dp_shard=2";

absl::Status Invalid(const std::string& mesh, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("--mesh=", mesh, ": ", what));
}

// Sizes as they are written: -1 for what is left of the ranks, 1 for an axis that is not named.
absl::StatusOr<MeshShape> WrittenMesh(const std::string& mesh) {
  MeshShape shape = {.dp_replicate = 0, .dp_shard = 0};
  for (const absl::string_view part : absl::StrSplit(mesh, ',')) {
    const std::vector<absl::string_view> sides = absl::StrSplit(part, '=');
    int size = 0;
    if (sides.size() != 2 || !absl::SimpleAtoi(sides[1], &size) || size == 0 || size < -1) {
      return Invalid(mesh, kForm);
    }
    int* const axis = sides[0] == "dp_replicate" ? &shape.dp_replicate
                      : sides[0] == "dp_shard"   ? &shape.dp_shard
                                                 : nullptr;
    if (axis == nullptr) return Invalid(mesh, absl::StrCat("no axis \"", sides[0], "\"; ", kForm));
    if (*axis != 0) return Invalid(mesh, absl::StrCat(sides[0], " comes twice; ", kForm));
    *axis = size;
  }
  if (shape.dp_replicate == -1 && shape.dp_shard == -1) return Invalid(mesh, "-1 for one axis at most");
  if (shape.dp_replicate == 0) shape.dp_replicate = 1;
  if (shape.dp_shard == 0) shape.dp_shard = 1;
  return shape;
}

}  // namespace

absl::StatusOr<MeshShape> MeshOf(const std::string& mesh, parallel::Strategy strategy, int ranks) {
  const bool ddp = strategy == parallel::Strategy::kDdp;
  if (mesh.empty()) return MeshShape{.dp_replicate = ddp ? ranks : 1, .dp_shard = ddp ? 1 : ranks};
  PLAIT_ASSIGN_OR_RETURN(MeshShape shape, WrittenMesh(mesh));
  if (shape.dp_replicate == -1) shape.dp_replicate = std::max(1, ranks / shape.dp_shard);
  if (shape.dp_shard == -1) shape.dp_shard = std::max(1, ranks / shape.dp_replicate);
  if (shape.ranks() != ranks) {
    return Invalid(mesh, absl::StrCat(shape.dp_replicate, " x ", shape.dp_shard, " = ", shape.ranks(),
                                      " ranks, but there are ", ranks,
                                      "; let the sizes multiply to it, or give --nproc=", shape.ranks()));
  }
  if (ddp && shape.dp_shard > 1) {
    return Invalid(mesh,
                   "ddp keeps everything whole; expected dp_shard=1, or --strategy=zero1, zero2 or fsdp");
  }
  return shape;
}

absl::StatusOr<int> RanksToStart(int nproc, const std::string& mesh, int cores) {
  if (nproc > 0) return nproc;
  if (!mesh.empty()) {
    PLAIT_ASSIGN_OR_RETURN(const MeshShape shape, WrittenMesh(mesh));
    if (shape.ranks() > 0) return shape.ranks();
  }
  return std::clamp(cores, 1, kMostDefaultRanks);
}

absl::StatusOr<int> RanksOfRun(int nproc, const std::string& mesh, const comm::Launcher& launcher,
                               int cores) {
  if (!launcher.starts_mpi()) return RanksToStart(nproc, mesh, cores);
  if (nproc <= 0 || nproc == launcher.size) return launcher.size;
  return absl::InvalidArgumentError(absl::StrCat("--nproc=", nproc, ": a launcher has started ",
                                                 launcher.size, " ranks; leave --nproc out"));
}

}  // namespace plait::training_program
