// Sizes on the meta device of the operators that models here use and for which LibTorch has them in Python only.
#ifndef PLAIT_PARALLEL_PLAN_META_KERNELS_H_
#define PLAIT_PARALLEL_PLAN_META_KERNELS_H_

namespace plait::parallel {

// For the rest of the process. Before the first of these operators; further calls do nothing.
void RegisterMetaKernels();

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_PLAN_META_KERNELS_H_
