#include "models/simd/avx512.h"

#include "models/gru/kernels/kernels_impl.h"

namespace plait::gru {

template <typename T>
const KernelTable<T>* Avx512Kernels(bool bfloat16) {
  static constexpr KernelTable<T> kFull = MakeTable<T, simd::FullProducts>("avx512");
  static constexpr KernelTable<T> kRounded = MakeTable<T, simd::RoundedProducts>("avx512 rounded");
  return bfloat16 ? &kRounded : &kFull;
}

template const KernelTable<float>* Avx512Kernels<float>(bool);
template const KernelTable<double>* Avx512Kernels<double>(bool);

}  // namespace plait::gru
