#include "models/simd/avx512.h"

#include "models/attention/kernels/compute_head.h"
#include "models/attention/kernels/compute_rotation.h"
#include "models/simd/bfloat16_elements_avx512.h"

namespace plait::attention {

const HeadKernels<BFloat16>* Avx512PairHeads() {
  static constexpr HeadKernels<BFloat16> kKernels{"avx512 pairs", &Forward<simd::BFloat16Elements>,
                                                  &Backward<simd::BFloat16Elements>,
                                                  &Rotate<simd::BFloat16Elements>};
  return &kKernels;
}

}  // namespace plait::attention
