#include "models/gru/kernels/simd_avx2.h"

#include "models/gru/kernels/kernels_impl.h"

namespace plait::gru {

template <typename T>
const KernelTable<T>* Avx2Kernels() {
  static constexpr KernelTable<T> kTable = MakeTable<T>("avx2");
  return &kTable;
}

template const KernelTable<float>* Avx2Kernels<float>();
template const KernelTable<double>* Avx2Kernels<double>();

}  // namespace plait::gru
