#include "models/gru/kernels/simd_portable.h"

#include "models/gru/kernels/kernels_impl.h"

namespace plait::gru {

template <typename T>
const KernelTable<T>* PortableKernels() {
  static constexpr KernelTable<T> kTable = MakeTable<T>("portable");
  return &kTable;
}

template const KernelTable<float>* PortableKernels<float>();
template const KernelTable<double>* PortableKernels<double>();

}  // namespace plait::gru
