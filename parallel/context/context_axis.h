// The ranks over which sequences are split, and the tokens of each rank.
//
//   const ContextAxis axis(mesh.axis("cp"), ContextKind::kRing);
//   const std::int64_t padded = axis.PaddedLength(1000);           // a sequence of 1000 tokens
//   tokens = tokens_of_whole_sequences.index_select(1, axis.Positions(padded));
//
// Ring: a sequence is divided into 2 N chunks, and rank r has the chunks r and 2 N - 1 - r ("zig-zag"). Under a causal
// mask early chunks have little work and late ones much, so this balances the ranks. Ulysses: rank r has the r-th of N
// parts. A sequence whose length is not a multiple of the number of chunks is padded at its end; padded positions are
// not keys of other tokens, and the caller ignores their targets. Local.
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

  // Rounds `length` up to a multiple of the number of chunks.
  std::int64_t PaddedLength(std::int64_t length) const;
  // Returns the positions of this rank's tokens in the sequence, in order: (padded_length / size()) of int64, on the
  // CPU. `padded_length` must be a multiple of the number of chunks.
  at::Tensor Positions(std::int64_t padded_length) const;

 private:
  int chunks() const { return kind_ == ContextKind::kRing ? 2 * size() : size(); }

  comm::Communicator comm_;
  ContextKind kind_ = ContextKind::kRing;
};

}  // namespace plait::context_parallel

#endif  // PLAIT_PARALLEL_CONTEXT_CONTEXT_AXIS_H_
