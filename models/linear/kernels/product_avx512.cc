#include "models/simd/avx512.h"

#include "models/linear/kernels/multiply.h"
#include "models/simd/float_elements.h"

namespace plait::linear {

const ProductKernels<float>* Avx512Products() {
  static constexpr ProductKernels<float> kKernels{"avx512", &Multiply<ProductKind<simd::FloatElements>>};
  return &kKernels;
}

}  // namespace plait::linear
