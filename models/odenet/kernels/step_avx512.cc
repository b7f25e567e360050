#include "models/simd/avx512.h"

// GCC 12's common variables for the addresses of unrolled loops cost these kernels up to a third, those for AVX2 nothing.
#pragma GCC optimize("no-ivopts")
#include "models/odenet/kernels/compute_step.h"

namespace plait::odenet {

const StepKernels* Avx512Steps() {
  static constexpr StepKernels kKernels = MakeSteps("avx512");
  return &kKernels;
}

}  // namespace plait::odenet
