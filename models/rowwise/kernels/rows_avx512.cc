#include "models/simd/avx512.h"

#include "models/rowwise/kernels/compute_activation.h"
#include "models/rowwise/kernels/compute_cross_entropy.h"
#include "models/rowwise/kernels/compute_layer_norm.h"
#include "models/rowwise/kernels/compute_row_sums.h"
#include "models/simd/float_elements.h"

namespace plait::rowwise {

const RowKernels<float>* Avx512Rows() {
  using Elements = simd::FloatElements;
  static constexpr RowKernels<float> kKernels{
      "avx512",
      &LayerNormRows<Elements, float>,
      &LayerNormOfX<Elements, float>,
      &LayerNormOfParameters<Elements, float>,
      &Activate<Elements, float>,
      &ActivateBackward<Elements, float>,
      &SumRows<Elements, float>,
      &SumRowsBackward<Elements, float>,
      &CrossEntropyRows<Elements, float>,
      &CrossEntropyOfLogits<Elements, float>,
  };
  return &kKernels;
}

}  // namespace plait::rowwise
