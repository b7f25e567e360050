#include "models/simd/avx512.h"

#include "models/gru/kernels/kernels_impl.h"
#include "models/simd/pair_products_avx512.h"

namespace plait::gru {

const KernelTable<float>* Avx512PairKernels() {
  static constexpr KernelTable<float> kTable = MakeTable<float, simd::PairProducts>("avx512 bf16 pairs");
  return &kTable;
}

}  // namespace plait::gru
