#include "models/simd/avx512.h"

#include "models/linear/kernels/multiply.h"
#include "models/simd/float_elements.h"

namespace plait::linear {

const ProductKernels<float>* Avx512Products() {
  using Kind = ProductKind<simd::FloatElements>;
  static constexpr ProductKernels<float> kKernels{"avx512", &Multiply<Kind>, &MultiplyEach<Kind>};
  return &kKernels;
}

}  // namespace plait::linear
