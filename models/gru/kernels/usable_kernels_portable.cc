#include "models/gru/kernels/usable_kernels.h"

namespace plait::gru {

template <typename T>
std::vector<const KernelTable<T>*> UsableKernels(bool bfloat16) {
  return {PortableKernels<T>(bfloat16)};
}

template std::vector<const KernelTable<float>*> UsableKernels(bool);
template std::vector<const KernelTable<double>*> UsableKernels(bool);

}  // namespace plait::gru
