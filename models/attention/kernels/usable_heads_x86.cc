#include "models/attention/kernels/head.h"
#include "models/linear/kernels/product.h"

namespace plait::attention {

template <>
const HeadKernels<float>* UsableHeads<float>() {
  return linear::UsableProducts<float>() != nullptr ? Avx512Heads() : nullptr;
}

template <>
const HeadKernels<BFloat16>* UsableHeads<BFloat16>() {
  return linear::UsableProducts<BFloat16>() != nullptr ? Avx512PairHeads() : nullptr;
}

}  // namespace plait::attention
