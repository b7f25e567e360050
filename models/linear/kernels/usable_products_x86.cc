#include <cpuid.h>

#include <cstdlib>
#include <cstring>

#include "models/linear/kernels/product.h"

namespace plait::linear {
namespace {

bool HasAvx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}

// AMX-BF16, which not every compiler's __builtin_cpu_supports knows: leaf 7, bit 22 of EDX.
bool HasAmx() {
  unsigned int eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx >> 22 & 1) != 0;
}

// Whether own products are used where both could be. PLAIT_PRODUCTS=own tests them on CPUs whose library is as fast.
bool Prefers(bool by_default) {
  static const char* const chosen = std::getenv("PLAIT_PRODUCTS");
  return chosen == nullptr ? by_default : std::strcmp(chosen, "own") == 0;
}

}  // namespace

template <>
const ProductKernels<float>* UsableProducts<float>() {
  return HasAvx512() && Prefers(__builtin_cpu_is("amd")) ? Avx512Products() : nullptr;
}

template <>
const ProductKernels<BFloat16>* UsableProducts<BFloat16>() {
  const bool by_default = __builtin_cpu_is("amd") || !HasAmx();
  return HasAvx512() && __builtin_cpu_supports("avx512bf16") && Prefers(by_default) ? Avx512PairProducts()
                                                                                    : nullptr;
}

}  // namespace plait::linear
