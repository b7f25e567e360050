// Where a parameter's elements are on the mesh: data, no communicator and no tensor.
//
//   Placement{.shape = {8, 6}, .boxes = {{.begin = {0, 2}, .size = {8, 2}}}};    // columns 2 and 3 are local
#ifndef PLAIT_MODELS_PLACEMENT_H_
#define PLAIT_MODELS_PLACEMENT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace plait::models {

// Part of a tensor: along dimension d the elements begin[d] to begin[d] + size[d] - 1.
struct Box {
  std::vector<std::int64_t> begin;
  std::vector<std::int64_t> size;

  friend bool operator==(const Box&, const Box&) = default;
};

// Where a parameter's elements are on the mesh, apart from the unit's replicate and shard axes.
struct Placement {
  // Of the whole tensor, and what is local of it: the local tensor, flattened, is the boxes, flattened, one
  // behind the other (a fused query-key-value weight that is split by columns has three). Without boxes the
  // whole tensor is local and `shape` is not read.
  std::vector<std::int64_t> shape = {};
  std::vector<Box> boxes = {};
  // Axes along which the other ranks hold the same values and compute the same gradient.
  std::vector<std::string> replicated = {};
  // Axes along which the other ranks hold the same values and compute a part of the gradient: the parts are
  // summed (sequence and context parallelism, weights tied across pipeline stages).
  std::vector<std::string> partial = {};
};

}  // namespace plait::models

#endif  // PLAIT_MODELS_PLACEMENT_H_
