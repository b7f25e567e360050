// How the ranks of random meshes hold a tensor: split in any dimensions, fused, sharded flat, or all of it.
#ifndef PLAIT_PARALLEL_CHECKPOINT_TESTING_TESTING_MESHES_H_
#define PLAIT_PARALLEL_CHECKPOINT_TESTING_TESTING_MESHES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/placement.h"
#include "parallel/checkpoint/tensor_piece.h"
#include "parallel/checkpoint/testing/testing_tensors.h"

namespace plait::parallel::testing {

// One rank's part: elements [begin, end) of its local tensor, which is the boxes, flattened, one behind the
// other. No boxes: of the whole tensor.
struct LocalShard {
  std::vector<models::Box> boxes;
  std::int64_t begin = 0, end = 0;
};

// All ranks of a mesh; each element of the tensor is in one of them. Some hold nothing. Different seeds give
// different meshes: flat shards of the whole tensor; splits of one or two dimensions; three fused matrices,
// each split, so that a rank has three boxes; boxes of any sizes; all of them sharded flat once more.
std::vector<LocalShard> RandomMesh(const TensorSpec& tensor, std::uint64_t seed);

// The shard's elements, found one by one by their coordinates; `whole` are those of the tensor.
std::vector<std::byte> ElementsOf(const TensorSpec& tensor, const LocalShard& shard,
                                  const std::vector<std::byte>& whole);

// The pieces that `rank` of `ranks` owns of tensors that a random mesh holds, whose members are dealt out at
// random.
OwnedPieces RandomMeshPieces(const std::vector<TensorSpec>& tensors, int ranks, int rank, std::uint64_t seed,
                             int version);

// Tensors of 0 to 4 dimensions and of all types, some without elements.
std::vector<TensorSpec> RandomTensors(int count, std::uint64_t seed);

}  // namespace plait::parallel::testing

#endif  // PLAIT_PARALLEL_CHECKPOINT_TESTING_TESTING_MESHES_H_
