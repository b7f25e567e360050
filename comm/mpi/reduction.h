// Reduces the values of several ranks in rank order, so that results are bitwise identical whichever rank reduces, in
// whatever pieces, and however the values were transferred.
#ifndef PLAIT_COMM_MPI_REDUCTION_H_
#define PLAIT_COMM_MPI_REDUCTION_H_

#include <cstdint>

#include "absl/types/span.h"
#include "comm/operation.h"

namespace plait::comm {

// out[i] = sources[0][i] op sources[1][i] op ..., from left to right; at least two sources. kAverage divides the sum
// by `divisor`; other operations ignore it. Half precision is reduced in float32 and rounded once. `out` may be one of
// the sources; `copy`, if not null, receives the same values and must not overlap anything.
void ReduceInOrder(ReduceOp op, DataType type, absl::Span<const void* const> sources, int divisor,
                   std::int64_t count, void* out, void* copy);

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_REDUCTION_H_
