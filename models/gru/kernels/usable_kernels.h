// The kernels that this CPU can run.
#ifndef PLAIT_MODELS_GRU_KERNELS_USABLE_KERNELS_H_
#define PLAIT_MODELS_GRU_KERNELS_USABLE_KERNELS_H_

#include <vector>

#include "models/gru/kernels/kernel_table.h"

namespace plait::gru {

// The tables with bfloat16 products, or those without, fastest first. Never empty: the portable table is always
// included.
template <typename T>
std::vector<const KernelTable<T>*> UsableKernels(bool bfloat16);

}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_KERNELS_USABLE_KERNELS_H_
