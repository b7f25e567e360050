#include "models/simd/portable.h"

#include "models/gru/kernels/kernels_impl.h"

namespace plait::gru {

template <typename T>
const KernelTable<T>* PortableKernels(bool bfloat16) {
  static constexpr KernelTable<T> kFull = MakeTable<T, simd::FullProducts>("portable");
  static constexpr KernelTable<T> kRounded = MakeTable<T, simd::RoundedProducts>("portable rounded");
  return bfloat16 ? &kRounded : &kFull;
}

template const KernelTable<float>* PortableKernels<float>(bool);
template const KernelTable<double>* PortableKernels<double>(bool);

}  // namespace plait::gru
