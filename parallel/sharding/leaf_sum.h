// Sums of gradients that are associated by one binary tree, whatever the number of ranks. Private to
// parallel/sharding.
//
// The leaves 0 ... 2^n - 1 of a step are micro-batches, in the order of data ranks and, on each of these, of
// MicroBatch::leaf. A node of height h is the sum of the leaves [k 2^h, (k + 1) 2^h): of its two halves. A rank
// with 2^k leaves adds the lower levels (LeafSum), the shard axis the next ones, the replicate axis those
// above (AxisSum). As long as all sizes are powers of two, the tree is the same.
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

// The leaves of one rank. In order they are 1 + log2(leaves) buffers at most; any other order gives the same bits.
class LeafSum {
 public:
  // Each leaf once; of one size.
  void Add(int leaf, FlatBuffer gradient);
  bool empty() const { return nodes_.empty(); }
  // The sum; a leaf that did not come is left out. Not of none.
  FlatBuffer Take();

 private:
  std::map<std::pair<int, int>, FlatBuffer> nodes_;  // by height and index
};

// One sum over the ranks of an axis, under way. Rules as for comm::TensorWork.
class AxisSum {
 public:
  AxisSum() = default;

  // `whole` (ranks * n) -> `shard` (n), which may be this rank's part of `whole`. `over_tree`: over the tree, and the
  // number of ranks is a power of two; else in the order of the transport. Bytes are the same: the ranks
  // exchange their parts, and each adds up those of its shard.
  static AxisSum ReduceScatter(const comm::Communicator& axis, const at::Tensor& whole,
                               const at::Tensor& shard, bool over_tree, int tag);
  // In place: as a reduce-scatter and an all-gather. The second begins within Test or Wait, on `gather`, a
  // communicator of the same ranks that has no other calls: the caller lets sums go on in one order.
  static AxisSum AllReduce(const comm::Communicator& axis, const comm::Communicator& gather,
                           const at::Tensor& values, bool over_tree, int tag);

  bool Test();
  void Wait();

 private:
  void Exchange(const comm::Communicator& axis, const at::Tensor& whole);
  void AddUp();

  comm::TensorWork work_;
  at::Tensor terms_;   // (ranks, n) on their way; undefined: work_ is the last part
  at::Tensor shard_;   // where their sum goes
  at::Tensor values_;  // to be gathered
  at::Tensor padded_;  // values_, or a copy that the number of ranks divides
  std::optional<comm::Communicator> gather_;
  int tag_ = 0;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_SHARDING_LEAF_SUM_H_
