// The ranks over which layers are split.
//
//   const TensorAxis axis(mesh.axis("tp"), {.sequence_parallel = true});
//   const TensorAxis alone;                     // a group of one: its collectives are the identity
//
// With sequence parallelism (Korthikanti et al., arXiv:2205.05198, section 4.2.2) norms, dropout and residual sums
// between the split layers are split by rows: of rows = batch * seq, a rank has
// [rank * rows / size, (rank + 1) * rows / size). The same bytes are communicated, activations take less memory, and
// the gradients of parameters that act on rows become partial.
#ifndef PLAIT_PARALLEL_TENSOR_TENSOR_AXIS_H_
#define PLAIT_PARALLEL_TENSOR_TENSOR_AXIS_H_

#include <cstdint>
#include <utility>

#include "comm/communicator.h"

namespace plait::tensor_parallel {

struct TensorAxisOptions {
  bool sequence_parallel = false;
};

// [begin, end)
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
};

// The rank-th of `ranks` parts of [0, count); sizes differ by one at most.
inline Range PartOf(std::int64_t count, int rank, int ranks) {
  return {count * rank / ranks, count * (rank + 1) / ranks};
}

class TensorAxis {
 public:
  TensorAxis() : comm_(comm::Communicator::Self()) {}
  TensorAxis(comm::Communicator comm, const TensorAxisOptions& options)
      : comm_(std::move(comm)), options_(options) {}

  const comm::Communicator& comm() const { return comm_; }
  int rank() const { return comm_.rank(); }
  int size() const { return comm_.size(); }
  bool split() const { return size() > 1; }
  bool sequence_parallel() const { return options_.sequence_parallel && split(); }
  Range PartOf(std::int64_t count) const { return tensor_parallel::PartOf(count, rank(), size()); }

 private:
  comm::Communicator comm_;
  TensorAxisOptions options_;
};

}  // namespace plait::tensor_parallel

#endif  // PLAIT_PARALLEL_TENSOR_TENSOR_AXIS_H_
