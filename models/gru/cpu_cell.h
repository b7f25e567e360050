// The cell that uses own kernels. Private to models/gru: tests choose a kernel table, others call NewGruCell.
#ifndef PLAIT_MODELS_GRU_CPU_CELL_H_
#define PLAIT_MODELS_GRU_CPU_CELL_H_

#include <memory>

#include "models/gru/cell.h"
#include "models/gru/kernels/kernel_table.h"

namespace plait::gru {

// `options`: dtype float32 or float64 (as T), CPU.
template <typename T>
std::unique_ptr<GruCell> NewCpuGruCell(const GruConfig& config, const at::TensorOptions& options,
                                       const KernelTable<T>* kernels);

}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_CPU_CELL_H_
