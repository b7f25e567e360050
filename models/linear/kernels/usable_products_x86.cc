#include "models/linear/kernels/product.h"

namespace plait::linear {
namespace {

bool AmdWithAvx512() {
  return __builtin_cpu_is("amd") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}

}  // namespace

template <>
const ProductKernels<float>* UsableProducts<float>() {
  return AmdWithAvx512() ? Avx512Products() : nullptr;
}

template <>
const ProductKernels<BFloat16>* UsableProducts<BFloat16>() {
  return AmdWithAvx512() && __builtin_cpu_supports("avx512bf16") ? Avx512PairProducts() : nullptr;
}

}  // namespace plait::linear
