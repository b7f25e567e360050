#include "models/gru/kernels/usable_kernels.h"

namespace plait::gru {

template <typename T>
std::vector<const KernelTable<T>*> UsableKernels() {
  std::vector<const KernelTable<T>*> usable;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq");
  if (avx512) usable.push_back(Avx512Kernels<T>());
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) usable.push_back(Avx2Kernels<T>());
  usable.push_back(PortableKernels<T>());
  return usable;
}

template std::vector<const KernelTable<float>*> UsableKernels();
template std::vector<const KernelTable<double>*> UsableKernels();

}  // namespace plait::gru
