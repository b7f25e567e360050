// The kernels, one implementation for all processor families; a .cc includes the family's header (models/simd), then
// this file. Everything is in an unnamed namespace, so that code compiled for one family is never linked into another.
#ifndef PLAIT_MODELS_GRU_KERNELS_KERNELS_IMPL_H_
#define PLAIT_MODELS_GRU_KERNELS_KERNELS_IMPL_H_

#include <cstdint>

#include "models/gru/kernels/adjoint_products.h"
#include "models/gru/kernels/gate_gradients.h"
#include "models/gru/kernels/kernel_table.h"
#include "models/gru/kernels/packing.h"
#include "models/gru/kernels/step_kernels.h"
#include "models/gru/kernels/vectors.h"

namespace plait::gru {
namespace {

template <typename T, typename F>
void Map(const T* from, Index count, T* to, const F& f) {
  using V = typename Family<T>::Wide;
  for (Index i = 0; i < count; i += kWide<T>) Store(to + i, count - i, f(Load<V>(from + i, count - i)));
}

template <typename T>
void SigmoidArray(const T* from, Index count, T* to) {
  Map(from, count, to, [](auto v) { return simd::Sigmoid(v); });
}

template <typename T>
void TanhArray(const T* from, Index count, T* to) {
  Map(from, count, to, [](auto v) { return simd::Tanh(v); });
}

template <typename T, typename P>
constexpr KernelTable<T> MakeTable(const char* name) {
  KernelTable<T> table{};
  table.name = name;
  table.bfloat16 = P::kBFloat16;
  table.padded_hidden = &PaddedHidden<T>;
  table.packed_columns_size = &PackedColumnsSize<T, P>;
  table.gate_gradients_size = &GateGradientsSize<T, P>;
  table.pack_weights = &PackWeights<T, P>;
  table.pack_bias = &PackBias<T>;
  table.pack_columns = &PackColumns<T, P>;
  table.input_gates = &InputGates<T, P>;
  table.step = &Step<T, P>;
  table.gate_gradients = &GateGradients<T, P>;
  table.gate_product = &GateProductOf<T, P>;
  table.outer_product = &OuterProductOf<T, P>;
  table.bias_sums = &BiasSums<T, P>;
  table.sigmoid = &SigmoidArray<T>;
  table.tanh = &TanhArray<T>;
  table.operand = &MakeOperand<T, P>;
  table.outer_operand = &MakeOuterOperand<T, P>;
  return table;
}

}  // namespace
}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_KERNELS_KERNELS_IMPL_H_
