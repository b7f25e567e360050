#include "models/simd/avx512.h"

#include "models/linear/kernels/multiply.h"
#include "models/simd/bfloat16_elements_avx512.h"

namespace plait::linear {

const ProductKernels<BFloat16>* Avx512PairProducts() {
  using Kind = ProductKind<simd::BFloat16Elements>;
  static constexpr ProductKernels<BFloat16> kKernels{"avx512 pairs", &Multiply<Kind>, &MultiplyEach<Kind>};
  return &kKernels;
}

}  // namespace plait::linear
