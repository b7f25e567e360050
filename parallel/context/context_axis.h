// The ranks over which sequences are split, and which tokens each has.
//
//   const ContextAxis axis(mesh.axis("cp"), ContextKind::kRing);
//   const std::int64_t padded = axis.PaddedLength(1000);           // a sequence of 1000 tokens
//   tokens = tokens_of_whole_sequences.index_select(1, axis.Positions(padded));
//
// Ring: a sequence is 2 N chunks, and rank r has the chunks r and 2 N - 1 - r: under a causal mask early chunks
// have little work and late ones much, so every rank has the same ("zig-zag", or head and tail). Ulysses: rank r
// has the r-th of N parts. A sequence whose length is no multiple of the chunks is padded at its end; padded
// positions are no keys of other tokens, and the caller ignores their targets.
#ifndef PLAIT_PARALLEL_CONTEXT_CONTEXT_AXIS_H_
#define PLAIT_PARALLEL_CONTEXT_CONTEXT_AXIS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>

#include "comm/communicator.h"

namespace plait::context_parallel {

enum class ContextKind { kRing, kUlysses };

class ContextAxis {
 public:
  ContextAxis() : comm_(comm::Communicator::Self()) {}
  ContextAxis(comm::Communicator comm, ContextKind kind) : comm_(std::move(comm)), kind_(kind) {}

  const comm::Communicator& comm() const { return comm_; }
  ContextKind kind() const { return kind_; }
  int rank() const { return comm_.rank(); }
  int size() const { return comm_.size(); }
  bool split() const { return size() > 1; }

  // The least multiple of the chunks that is at least `length`.
  std::int64_t PaddedLength(std::int64_t length) const;
  // (padded_length / size()) of int64: of this rank's tokens, in their order. `padded_length` is a multiple of the
  // chunks.
  at::Tensor Positions(std::int64_t padded_length) const;

 private:
  int chunks() const { return kind_ == ContextKind::kRing ? 2 * size() : size(); }

  comm::Communicator comm_;
  ContextKind kind_ = ContextKind::kRing;
};

}  // namespace plait::context_parallel

#endif  // PLAIT_PARALLEL_CONTEXT_CONTEXT_AXIS_H_
