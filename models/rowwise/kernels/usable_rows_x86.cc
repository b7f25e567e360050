#include "models/linear/kernels/product.h"
#include "models/rowwise/kernels/row_functions.h"

namespace plait::rowwise {

template <>
const RowKernels<float>* UsableRows<float>() {
  return linear::UsableProducts<float>() != nullptr ? Avx512Rows() : nullptr;
}

template <>
const RowKernels<BFloat16>* UsableRows<BFloat16>() {
  return linear::UsableProducts<BFloat16>() != nullptr ? Avx512PairRows() : nullptr;
}

}  // namespace plait::rowwise
