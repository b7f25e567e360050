#include "models/simd/avx2.h"

#include "models/gru/kernels/kernels_impl.h"

namespace plait::gru {

template <typename T>
const KernelTable<T>* Avx2Kernels(bool bfloat16) {
  static constexpr KernelTable<T> kFull = MakeTable<T, simd::FullProducts>("avx2");
  static constexpr KernelTable<T> kRounded = MakeTable<T, simd::RoundedProducts>("avx2 rounded");
  return bfloat16 ? &kRounded : &kFull;
}

template const KernelTable<float>* Avx2Kernels<float>(bool);
template const KernelTable<double>* Avx2Kernels<double>(bool);

}  // namespace plait::gru
