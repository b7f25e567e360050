// Sums of gradients in the association of a fixed binary tree, for any number of ranks. Private to parallel/sharding.
//
// The leaves 0 ... 2^n - 1 of a step are micro-batches, ordered by data rank, then by MicroBatch::leaf. Node k of
// height h is the sum of its two halves, of the leaves [k 2^h, (k + 1) 2^h). A rank with 2^k leaves adds the lowest k
// levels (LeafSum), the shard axis the next ones, the replicate axis the rest (AxisSum). If all sizes are powers of
// two, this is always the same tree.
#ifndef PLAIT_PARALLEL_SHARDING_LEAF_SUM_H_
#define PLAIT_PARALLEL_SHARDING_LEAF_SUM_H_

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <utility>

#include "comm/communicator.h"
#include "comm/tensor_collectives.h"
#include "parallel/sharding/flat_buffer.h"

namespace plait::parallel {

// Sums the leaves of one rank. Added in ascending order they take at most 1 + log2(leaves) buffers; any other order
// gives the same bits.
class LeafSum {
 public:
  // Add each leaf once; all have the same size. Twice is a programming error.
  void Add(int leaf, FlatBuffer gradient);
  bool empty() const { return nodes_.empty(); }
  // Returns the sum of the leaves that were added, of which there must be one, and clears.
  FlatBuffer Take();

 private:
  std::map<std::pair<int, int>, FlatBuffer> nodes_;  // by height and index
};

// A sum over the ranks of an axis in flight. The rules of comm::TensorWork apply.
class AxisSum {
 public:
  AxisSum() = default;

  // Collective. `whole` (ranks * n) -> `shard` (n), which may be this rank's part of `whole`. `over_tree`: adds in the
  // order of the tree, and the number of ranks must be a power of two; else in any order. Sends the same bytes either
  // way: over the tree, ranks exchange their parts (all-to-all), and each adds those of its shard.
  static AxisSum ReduceScatter(const comm::Communicator& axis, const at::Tensor& whole,
                               const at::Tensor& shard, bool over_tree, int tag);
  // Collective, in place. Over the tree of more than two ranks: a reduce-scatter and an all-gather, which starts within
  // Test or Wait, on `gather`, a communicator of the same ranks without other calls; callers must advance sums in the
  // same order on all ranks.
  static AxisSum AllReduce(const comm::Communicator& axis, const comm::Communicator& gather,
                           const at::Tensor& values, bool over_tree, int tag);

  bool Test();
  void Wait();
  bool in_flight() const { return work_.in_flight(); }

 private:
  void Exchange(const comm::Communicator& axis, const at::Tensor& whole);
  void AddUp();

  comm::TensorWork work_;
  at::Tensor terms_;   // (ranks, n) in flight; undefined: work_ is the last operation
  at::Tensor shard_;   // receives their sum
  at::Tensor values_;  // to be gathered
  at::Tensor padded_;  // values_, or a copy padded to a multiple of the ranks
  std::optional<comm::Communicator> gather_;
  int tag_ = 0;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_SHARDING_LEAF_SUM_H_
