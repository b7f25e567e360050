#include "comm/mpi/reduction_loops.h"

namespace plait::comm {

void ReducePortable(ReduceOp op, DataType type, const ReductionTask& task) { Reduce(op, type, task); }

}  // namespace plait::comm
