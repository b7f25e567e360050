#include "models/simd/avx512.h"

#include "models/rowwise/kernels/compute_activation.h"
#include "models/rowwise/kernels/compute_cross_entropy.h"
#include "models/rowwise/kernels/compute_layer_norm.h"
#include "models/rowwise/kernels/compute_row_sums.h"
#include "models/simd/bfloat16_elements_avx512.h"

namespace plait::rowwise {

const RowKernels<BFloat16>* Avx512PairRows() {
  using Elements = simd::BFloat16Elements;
  static constexpr RowKernels<BFloat16> kKernels{
      "avx512 pairs",
      &LayerNormRows<Elements, BFloat16>,
      &LayerNormOfX<Elements, BFloat16>,
      &LayerNormOfParameters<Elements, BFloat16>,
      &Activate<Elements, BFloat16>,
      &ActivateBackward<Elements, BFloat16>,
      &SumRows<Elements, BFloat16>,
      &SumRowsBackward<Elements, BFloat16>,
      &CrossEntropyRows<Elements, BFloat16>,
      &CrossEntropyOfLogits<Elements, BFloat16>,
  };
  return &kKernels;
}

}  // namespace plait::rowwise
