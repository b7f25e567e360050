#include "models/gru/kernels/usable_kernels.h"

namespace plait::gru {

template <typename T>
std::vector<const KernelTable<T>*> UsableKernels() {
  return {PortableKernels<T>()};
}

template std::vector<const KernelTable<float>*> UsableKernels();
template std::vector<const KernelTable<double>*> UsableKernels();

}  // namespace plait::gru
