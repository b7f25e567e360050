#include "models/odenet/kernels/step.h"

namespace plait::odenet {

std::vector<const StepKernels*> UsableSteps() {
  std::vector<const StepKernels*> usable;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")) {
    usable.push_back(Avx512Steps());
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) usable.push_back(Avx2Steps());
  usable.push_back(PortableSteps());
  return usable;
}

}  // namespace plait::odenet
