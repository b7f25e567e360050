// A sum over a sequence of terms that is bitwise independent of how the terms are distributed over ranks.
//
// The terms 0 ... n - 1 are the leaves of one fixed binary tree: a node of height h covers the leaves
// [k 2^h, (k + 1) 2^h) and adds its left and right half. Each rank adds the nodes all of whose leaves it owns; the
// rest of the tree is added by point-to-point messages, and the sum is broadcast.
#ifndef PLAIT_MGRIT_LAYER_PARALLEL_TREE_SUM_H_
#define PLAIT_MGRIT_LAYER_PARALLEL_TREE_SUM_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "comm/communicator.h"

namespace plait::mgrit {

class TreeSum {
 public:
  // Fills `out` (zeroed before the call) with the term of an own leaf.
  using Term = std::function<void(std::int64_t leaf, at::Tensor& out)>;

  // `owners[p]` is the rank, bounds[p] ... bounds[p + 1] - 1 the leaves, of position p.
  TreeSum(std::vector<std::int64_t> bounds, std::vector<int> owners, comm::Communicator communicator);

  // Collective. Writes the sum over all leaves into `sum` on every rank; contiguous, of the same shape everywhere.
  void Compute(const Term& term, at::Tensor& sum);

 private:
  int PositionOf(std::int64_t leaf) const;
  at::Tensor& Buffer(int depth, const at::Tensor& like);
  void Node(int height, std::int64_t index, int depth, const Term& term, at::Tensor& out);

  std::vector<std::int64_t> bounds_;
  std::vector<int> owners_;
  comm::Communicator communicator_;
  std::vector<at::Tensor> buffers_;
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_LAYER_PARALLEL_TREE_SUM_H_
