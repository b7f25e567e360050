#include <cstdlib>
#include <cstring>

#include "models/linear/kernels/product.h"

namespace plait::linear {
namespace {

bool HasAvx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}

// Whether own products are used where both could be. PLAIT_PRODUCTS=own tests them on CPUs whose library is as fast.
bool PrefersOwn() {
  static const char* const chosen = std::getenv("PLAIT_PRODUCTS");
  return chosen == nullptr ? __builtin_cpu_is("amd") : std::strcmp(chosen, "own") == 0;
}

}  // namespace

template <>
const ProductKernels<float>* UsableProducts<float>() {
  return HasAvx512() && PrefersOwn() ? Avx512Products() : nullptr;
}

template <>
const ProductKernels<BFloat16>* UsableProducts<BFloat16>() {
  return HasAvx512() && __builtin_cpu_supports("avx512bf16") && PrefersOwn() ? Avx512PairProducts() : nullptr;
}

}  // namespace plait::linear
