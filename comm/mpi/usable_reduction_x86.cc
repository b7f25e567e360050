#include "comm/mpi/reduction_families.h"

namespace plait::comm {

ReductionKernel UsableReduction() { return __builtin_cpu_supports("avx2") ? ReduceAvx2 : ReducePortable; }

}  // namespace plait::comm
