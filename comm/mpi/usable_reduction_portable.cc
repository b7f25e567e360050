#include "comm/mpi/reduction_families.h"

namespace plait::comm {

ReductionKernel UsableReduction() { return ReducePortable; }

}  // namespace plait::comm
