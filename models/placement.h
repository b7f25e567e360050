// Where a parameter's elements are on the mesh. Plain data, without communicator or tensor.
//
//   Placement{.shape = {8, 6}, .boxes = {{.begin = {0, 2}, .size = {8, 2}}}};    // columns 2 and 3 are local
#ifndef PLAIT_MODELS_PLACEMENT_H_
#define PLAIT_MODELS_PLACEMENT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace plait::models {

// A box of a tensor: elements begin[d] to begin[d] + size[d] - 1 along dimension d.
struct Box {
  std::vector<std::int64_t> begin;
  std::vector<std::int64_t> size;

  friend bool operator==(const Box&, const Box&) = default;
};

// Placement on the mesh axes other than the unit's replicate and shard axes.
struct Placement {
  // Shape of the whole tensor, and the boxes of it that are local: the flattened local tensor is the concatenation
  // of the flattened boxes (a fused query-key-value weight split by columns has three). Without boxes the whole
  // tensor is local and `shape` is not read.
  std::vector<std::int64_t> shape = {};
  std::vector<Box> boxes = {};
  // Axes along which the other ranks hold the same values and compute the same gradient.
  std::vector<std::string> replicated = {};
  // Axes along which the other ranks hold the same values but compute partial gradients, which are summed
  // (sequence and context parallelism, weights tied across pipeline stages).
  std::vector<std::string> partial = {};
};

}  // namespace plait::models

#endif  // PLAIT_MODELS_PLACEMENT_H_
