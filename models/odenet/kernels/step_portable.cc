#include "models/simd/portable.h"

#include "models/odenet/kernels/compute_step.h"

namespace plait::odenet {

const StepKernels* PortableSteps() {
  static constexpr StepKernels kKernels = MakeSteps("portable");
  return &kKernels;
}

}  // namespace plait::odenet
