#include "models/gru/kernels/simd_avx512.h"

#include "models/gru/kernels/kernels_impl.h"

namespace plait::gru {

template <typename T>
const KernelTable<T>* Avx512Kernels() {
  static constexpr KernelTable<T> kTable = MakeTable<T>("avx512");
  return &kTable;
}

template const KernelTable<float>* Avx512Kernels<float>();
template const KernelTable<double>* Avx512Kernels<double>();

}  // namespace plait::gru
