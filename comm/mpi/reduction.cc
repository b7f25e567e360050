#include "comm/mpi/reduction.h"

#include "comm/mpi/reduction_families.h"

namespace plait::comm {

void ReduceInOrder(ReduceOp op, DataType type, absl::Span<const void* const> sources, int divisor,
                   std::int64_t count, void* out, void* copy) {
  static const ReductionKernel reduce = UsableReduction();
  reduce(op, type, {sources, op == ReduceOp::kAverage ? divisor : 1, count, out, copy});
}

}  // namespace plait::comm
