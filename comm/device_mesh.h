// Ranks on a grid of named axes, as PyTorch's DeviceMesh.
//
//   absl::StatusOr<comm::DeviceMesh> mesh =
//       comm::DeviceMesh::Create(world, {{"dp_replicate", 2}, {"dp_shard", 2}, {"tp", 2}});
//   mesh->axis("tp").AllReduce(...);                 // among the ranks that differ in tp alone
//   mesh->Coordinates(5);                            // {1, 0, 1}: row-major, the last axis fastest
//
// Usual names: dp_replicate, dp_shard, pp, cp, tp, ep, lp. The same ranks can be viewed along other axes:
//
//   // expert parallelism over the ranks of data and context parallelism: 4 x 2 ranks as 2 x 4
//   mesh->Fold({"dp_shard", "cp"}, {{"ep_shard", 2}, {"ep", 4}});
//   mesh->Fold({"dp_replicate", "dp_shard"}, {{"dp", 4}});
#ifndef PLAIT_COMM_DEVICE_MESH_H_
#define PLAIT_COMM_DEVICE_MESH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "comm/communicator.h"

namespace plait::comm {

struct MeshAxis {
  std::string name;
  int size = 1;  // -1 for at most one axis: inferred from the number of ranks
};

class DeviceMesh {
 public:
  // Collective over `world`; all ranks pass the same axes. INVALID_ARGUMENT, without communication, if a name is empty
  // or appears twice, a size is neither positive nor the one -1, or the product is not the number of ranks.
  static absl::StatusOr<DeviceMesh> Create(const Communicator& world, std::vector<MeshAxis> axes);

  // Collective over world(). Replaces the axes `from` by `into`: the ranks along `from`, numbered row-major in the
  // order given, are laid out row-major over `into`, which takes the position of from[0]. One size may be -1. The other
  // axes and their communicators stay. INVALID_ARGUMENT if `from` is empty, an axis is unknown, listed twice or itself
  // derived (WithView, WithSubset), a resulting name is not unique, or the products differ.
  absl::StatusOr<DeviceMesh> Fold(const std::vector<std::string>& from, std::vector<MeshAxis> into) const;

  // Collective over world(). As Fold, but keeps the axes `from` and appends `into`: both views of the same ranks in one
  // mesh. INVALID_ARGUMENT as Fold, and if a name of `into` is not new.
  absl::StatusOr<DeviceMesh> WithView(const std::vector<std::string>& from, std::vector<MeshAxis> into) const;

  // Collective over world(). Appends an axis `name` of the ranks whose coordinates on `axis` are `members`, in this
  // order; any other rank is alone on it. For what only some ranks of an axis share, such as a weight tied between the
  // first and the last pipeline stage. INVALID_ARGUMENT if `axis` is unknown or itself derived, `name` is not new, or a
  // member is out of range or listed twice.
  absl::StatusOr<DeviceMesh> WithSubset(absl::string_view axis, const std::vector<int>& members,
                                        const std::string& name) const;

  const std::vector<MeshAxis>& axes() const { return axes_; }
  bool Has(absl::string_view name) const;
  // The communicator of the ranks that differ from this one along `name` only; its rank is this rank's coordinate, its
  // name the axis's. Aborts if there is no such axis.
  const Communicator& axis(absl::string_view name) const;
  const Communicator& world() const { return world_; }

  // One coordinate per axis, in the order of axes().
  const std::vector<int>& Coordinates(int world_rank) const { return coordinates_[world_rank]; }
  const std::vector<int>& Coordinates() const { return Coordinates(world_.rank()); }
  // "[ 0/47] [tp:0/3][dp: 0/11]": rank and coordinates, each with its largest value.
  std::string Describe() const;

 private:
  DeviceMesh(Communicator world, std::vector<MeshAxis> axes, std::vector<std::vector<int>> coordinates);
  int IndexOf(absl::string_view name) const;  // -1: unknown
  // Splits the world along axis `index`.
  Communicator MakeAxis(int index) const;

  Communicator world_;
  std::vector<MeshAxis> axes_;
  std::vector<std::vector<int>> coordinates_;  // by world rank
  std::vector<Communicator> communicators_;    // by axis
  // By axis: whether it is derived from others (WithView, WithSubset), so that its coordinate is not independent of
  // theirs.
  std::vector<bool> follows_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_DEVICE_MESH_H_
