#include "models/attention/kernels/head.h"

namespace plait::attention {

template <>
const HeadKernels<float>* UsableHeads<float>() {
  return nullptr;
}

template <>
const HeadKernels<BFloat16>* UsableHeads<BFloat16>() {
  return nullptr;
}

}  // namespace plait::attention
