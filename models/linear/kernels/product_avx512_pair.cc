#include "models/simd/avx512.h"

#include "models/linear/kernels/multiply.h"
#include "models/simd/bfloat16_elements_avx512.h"

namespace plait::linear {

const ProductKernels<BFloat16>* Avx512PairProducts() {
  static constexpr ProductKernels<BFloat16> kKernels{"avx512 pairs",
                                                     &Multiply<ProductKind<simd::BFloat16Elements>>};
  return &kKernels;
}

}  // namespace plait::linear
