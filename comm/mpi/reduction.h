// Values of several ranks reduced in the ranks' order, so that the bits depend on nothing else: not on who
// reduces, in what pieces, or by which way the values came.
#ifndef PLAIT_COMM_MPI_REDUCTION_H_
#define PLAIT_COMM_MPI_REDUCTION_H_

#include <cstdint>

#include "absl/types/span.h"
#include "comm/operation.h"

namespace plait::comm {

// out[i] = sources[0][i] op sources[1][i] op ..., from the left; two sources or more. Average divides the sum
// by `divisor` in the last pass. Half precision is reduced in float32 and rounded once. `out` may be one of
// the sources; `copy`, if not null, gets the same values and overlaps nothing.
void ReduceInOrder(ReduceOp op, DataType type, absl::Span<const void* const> sources, int divisor,
                   std::int64_t count, void* out, void* copy);

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_REDUCTION_H_
