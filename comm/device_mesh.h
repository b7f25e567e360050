// Ranks on a grid of named axes: which rank plays which part.
//
//   absl::StatusOr<comm::DeviceMesh> mesh =
//       comm::DeviceMesh::Create(world, {{"dp_replicate", 2}, {"dp_shard", 2}, {"tp", 2}});
//   mesh->axis("tp").AllReduce(...);                 // among the ranks that differ in tp alone
//   mesh->Coordinates(5);                            // {1, 0, 1}: row-major, the last axis fastest
//
// Usual names: dp_replicate, dp_shard, pp, cp, tp, ep, lp. The same ranks can be seen in another way:
//
//   // experts are spread over what data and context parallelism share: 4 x 2 ranks as 2 x 4
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
  int size = 1;  // -1 for one axis of a mesh: what is left of the ranks
};

class DeviceMesh {
 public:
  // Collective. INVALID_ARGUMENT, the same on all ranks, if a name is empty or appears twice, a size is not
  // positive, or the product is not the number of ranks.
  static absl::StatusOr<DeviceMesh> Create(const Communicator& world, std::vector<MeshAxis> axes);

  // Collective. The view in which the ranks of the axes `from`, numbered row-major in the order given, are
  // laid out over `into`, row-major. `into` stands where the first of `from` stood; the other axes and their
  // communicators stay. INVALID_ARGUMENT if an axis is unknown or the products differ.
  absl::StatusOr<DeviceMesh> Fold(const std::vector<std::string>& from, std::vector<MeshAxis> into) const;

  // Collective. This mesh with Fold's new axes besides those that they are made of: both views of the same ranks at once.
  // INVALID_ARGUMENT as Fold, and if a name of `into` is not new.
  absl::StatusOr<DeviceMesh> WithView(const std::vector<std::string>& from, std::vector<MeshAxis> into) const;

  // Collective. The view with a further axis `name`, along which the ranks at the coordinates `members` of
  // `axis` are, in this order; ranks elsewhere are alone on it. For what some of the ranks of an axis share: a
  // weight that is tied between the first and the last pipeline stage. INVALID_ARGUMENT if `axis` is unknown,
  // `name` is not new, or a member is out of range or there twice.
  absl::StatusOr<DeviceMesh> WithSubset(absl::string_view axis, const std::vector<int>& members,
                                        const std::string& name) const;

  const std::vector<MeshAxis>& axes() const { return axes_; }
  bool Has(absl::string_view name) const;
  // Unknown names are programming errors. The communicator of the ranks that differ from this one along
  // `name` alone; its rank is this rank's coordinate, its name the axis's.
  const Communicator& axis(absl::string_view name) const;
  const Communicator& world() const { return world_; }

  // One coordinate per axis, in the order of axes().
  const std::vector<int>& Coordinates(int world_rank) const { return coordinates_[world_rank]; }
  const std::vector<int>& Coordinates() const { return Coordinates(world_.rank()); }
  // "[ 0/47] [tp:0/3][dp: 0/11]": rank and coordinates, each with its largest value, for the line that a rank
  // prints about itself.
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
  // By axis: whether it follows from others (WithView, WithSubset), so that ranks that differ along another axis may
  // differ along it too.
  std::vector<bool> follows_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_DEVICE_MESH_H_
