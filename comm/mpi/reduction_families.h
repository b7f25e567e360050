// Reductions compiled for several instruction sets, one of which is selected at run time. Private to reduction.
#ifndef PLAIT_COMM_MPI_REDUCTION_FAMILIES_H_
#define PLAIT_COMM_MPI_REDUCTION_FAMILIES_H_

#include <cstdint>

#include "absl/types/span.h"
#include "comm/operation.h"

namespace plait::comm {

struct ReductionTask {
  absl::Span<const void* const> sources;
  int divisor;  // 1 but for means
  std::int64_t count;
  void* out;
  void* copy;
};

using ReductionKernel = void (*)(ReduceOp op, DataType type, const ReductionTask& task);

// All give bitwise identical results.
void ReducePortable(ReduceOp op, DataType type, const ReductionTask& task);
void ReduceAvx2(ReduceOp op, DataType type, const ReductionTask& task);

// The fastest one that this processor supports.
ReductionKernel UsableReduction();

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_REDUCTION_FAMILIES_H_
