#include "models/simd/avx512.h"

// GCC 12's induction-variable optimization makes these kernels up to a third slower; it does not affect those for AVX2.
#ifndef __clang__
#pragma GCC optimize("no-ivopts")
#endif
#include "models/odenet/kernels/compute_step.h"

namespace plait::odenet {

const StepKernels* Avx512Steps() {
  static constexpr StepKernels kKernels = MakeSteps("avx512");
  return &kKernels;
}

}  // namespace plait::odenet
