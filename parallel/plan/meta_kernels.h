// Meta kernels of operators that models here use and that LibTorch implements for the meta device only in Python.
#ifndef PLAIT_PARALLEL_PLAN_META_KERNELS_H_
#define PLAIT_PARALLEL_PLAN_META_KERNELS_H_

namespace plait::parallel {

// Registers them for the rest of the process. Call before the first of these operators runs; further calls do nothing.
void RegisterMetaKernels();

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PLAN_META_KERNELS_H_
