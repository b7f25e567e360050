// Which kernels this processor can run.
#ifndef PLAIT_MODELS_GRU_KERNELS_USABLE_KERNELS_H_
#define PLAIT_MODELS_GRU_KERNELS_USABLE_KERNELS_H_

#include <vector>

#include "models/gru/kernels/kernel_table.h"

namespace plait::gru {

// Those with bfloat16 products, or the others; the fastest first. Never empty: the portable table is always
// there.
template <typename T>
std::vector<const KernelTable<T>*> UsableKernels(bool bfloat16);

}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_KERNELS_USABLE_KERNELS_H_
