#include <type_traits>

#include "models/gru/kernels/usable_kernels.h"

namespace plait::gru {

template <typename T>
std::vector<const KernelTable<T>*> UsableKernels(bool bfloat16) {
  std::vector<const KernelTable<T>*> usable;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  if constexpr (std::is_same_v<T, float>) {
    if (bfloat16 && avx512 && __builtin_cpu_supports("avx512bf16")) usable.push_back(Avx512PairKernels());
  }
  if (avx512) usable.push_back(Avx512Kernels<T>(bfloat16));
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    usable.push_back(Avx2Kernels<T>(bfloat16));
  usable.push_back(PortableKernels<T>(bfloat16));
  return usable;
}

template std::vector<const KernelTable<float>*> UsableKernels(bool);
template std::vector<const KernelTable<double>*> UsableKernels(bool);

}  // namespace plait::gru
