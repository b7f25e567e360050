// Random meshes: how their ranks hold a tensor, split along any dimensions, fused, sharded flat, or whole.
#ifndef PLAIT_PARALLEL_CHECKPOINT_TESTING_TESTING_MESHES_H_
#define PLAIT_PARALLEL_CHECKPOINT_TESTING_TESTING_MESHES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/placement.h"
#include "parallel/checkpoint/tensor_piece.h"
#include "parallel/checkpoint/testing/testing_tensors.h"

namespace plait::parallel::testing {

// One rank's part: elements [begin, end) of its local tensor, the concatenation of its flattened boxes. No boxes: of
// the whole tensor.
struct LocalShard {
  std::vector<models::Box> boxes;
  std::int64_t begin = 0, end = 0;
};

// The shards of all ranks of a mesh; each element of the tensor is in exactly one. Some are empty. Different seeds give
// different meshes: flat shards of the whole tensor; splits along one or two dimensions; three fused matrices, each
// split, so that a rank has three boxes; boxes of any sizes; all of them also sharded flat.
std::vector<LocalShard> RandomMesh(const TensorSpec& tensor, std::uint64_t seed);

// The shard's elements, found one by one by their coordinates in `whole`, the elements of the tensor.
std::vector<std::byte> ElementsOf(const TensorSpec& tensor, const LocalShard& shard,
                                  const std::vector<std::byte>& whole);

// The pieces that `rank` of `ranks` owns: the shards of a random mesh, assigned to ranks at random.
OwnedPieces RandomMeshPieces(const std::vector<TensorSpec>& tensors, int ranks, int rank, std::uint64_t seed,
                             int version);

// Tensors of 0 to 4 dimensions and of all types, some without elements.
std::vector<TensorSpec> RandomTensors(int count, std::uint64_t seed);

}  // namespace plait::parallel::testing

#endif  // PLAIT_PARALLEL_CHECKPOINT_TESTING_TESTING_MESHES_H_
