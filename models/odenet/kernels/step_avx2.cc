#include "models/simd/avx2.h"

#include "models/odenet/kernels/compute_step.h"

namespace plait::odenet {

const StepKernels* Avx2Steps() {
  static constexpr StepKernels kKernels = MakeSteps("avx2");
  return &kKernels;
}

}  // namespace plait::odenet
