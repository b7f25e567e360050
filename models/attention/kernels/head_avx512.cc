#include "models/simd/avx512.h"

#include "models/attention/kernels/compute_head.h"
#include "models/attention/kernels/compute_rotation.h"

namespace plait::attention {

const HeadKernels<float>* Avx512Heads() {
  static constexpr HeadKernels<float> kKernels{"avx512", &Forward<simd::FloatElements>,
                                               &Backward<simd::FloatElements>, &Rotate<simd::FloatElements>};
  return &kKernels;
}

}  // namespace plait::attention
