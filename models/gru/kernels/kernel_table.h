// The arithmetic of one GRU layer on plain arrays, for one processor family and number type.
//
// Sizes: rows = batch, hidden, input (features of what the layer reads). Gate order everywhere: r, z, n (as
// torch), and hn, the hidden product inside n. Matrices are row-major.
//
// Blocked layouts divide the hidden units into blocks of one vector (the last block may be a half vector);
// `padded_hidden` is the total number of lanes. Layouts are private to a table: pack and compute with the same
// table.
//   packed layer weights  [block][k][r, z, n][lane]          gates bias   [block][r, z, n, hn][lane]
//   input gates           [block][row][r, z, n][lane]        saved        [block][row][r, z, n, hn][lane]
//   gate gradients        [r, z, n, hn][block][row][lane]    packed columns (adjoint weights)  [panel][k][column]
// A bfloat16 table rounds both factors of each product. On CPUs that multiply pairs of bfloat16, two neighbours in k
// share one float in operands and packed weights, and gate gradients are stored twice, in pairs of units and in pairs
// of rows.
//
// Every result is a fixed chain of multiply-adds (bias, input, hidden; k ascending), so that it does not depend on the
// other rows, on alignment, or on whether input gates were computed in advance. No function allocates.
#ifndef PLAIT_MODELS_GRU_KERNELS_KERNEL_TABLE_H_
#define PLAIT_MODELS_GRU_KERNELS_KERNEL_TABLE_H_

#include <cstdint>

namespace plait::gru {

// A row-major matrix inside a larger array.
template <typename T>
struct Rows {
  const T* data = nullptr;
  std::int64_t stride = 0;
  std::int64_t columns = 0;
};

template <typename T>
struct LayerStep {
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  bool implicit = false;
  T dt = 1;
  int repeats = 1;
  Rows<T> input;  // multiplied by weight_ih, in operand layout; not read if input_gates is given
  const T* input_gates = nullptr;  // bias and input product, computed in advance
  Rows<T> state_operand;           // multiplied by weight_hh: the state in operand layout
  const T* state = nullptr;        // (rows, hidden)
  const T* input_weights = nullptr;
  const T* hidden_weights = nullptr;
  const T* bias = nullptr;
  T* new_state = nullptr;  // (rows, hidden), not the same as state
  T* saved = nullptr;      // what the adjoint needs, or null
};

template <typename T>
struct LayerGateGradients {
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  bool implicit = false;
  T dt = 1;
  int repeats = 1;
  const T* saved = nullptr;
  const T* state = nullptr;       // (rows, hidden), before the step
  const T* lambda_out = nullptr;  // (rows, hidden): gradient with respect to the new state
  T* gate_gradients = nullptr;
  T* lambda_in = nullptr;  // (rows, hidden): the part that does not pass through the gates; may be lambda_out
};

// to(row, column) += sum over the three gates and their units of gate_gradients * weight, k = 3 * hidden.
template <typename T>
struct GateProduct {
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  std::int64_t columns = 0;
  bool hidden_path = false;  // gates r, z, hn (weight_hh); else r, z, n (weight_ih)
  const T* gate_gradients = nullptr;
  const T* packed_columns = nullptr;
  T* to = nullptr;
  std::int64_t to_stride = 0;
};

// One step's contribution to a weight gradient.
template <typename T>
struct OuterTerm {
  const T* gate_gradients = nullptr;
  const T* operand = nullptr;  // (rows, columns) as outer operand, row stride operand_stride
};

// to(3 * hidden, columns) += sum over terms and rows of gate_gradients^T operand. The sum of a call is formed in the
// order of the terms, then added once.
template <typename T>
struct OuterProduct {
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  std::int64_t columns = 0;
  std::int64_t operand_stride = 0;
  bool hidden_path = false;
  const OuterTerm<T>* terms = nullptr;
  std::int64_t term_count = 0;
  T* to = nullptr;
};

template <typename T>
struct KernelTable {
  const char* name;
  bool bfloat16;  // products of bfloat16 factors; else operands are the arrays themselves
  std::int64_t (*padded_hidden)(std::int64_t hidden);
  // Numbers in pack_columns' result.
  std::int64_t (*packed_columns_size)(std::int64_t hidden, std::int64_t columns);
  // Numbers in a layer's gate gradients.
  std::int64_t (*gate_gradients_size)(std::int64_t rows, std::int64_t hidden);

  // weight (3 hidden, k) -> packed layer weights, 3 * padded_hidden * k numbers
  void (*pack_weights)(const T* weight, std::int64_t hidden, std::int64_t k, T* to);
  // bias_ih, bias_hh (3 hidden) -> gates bias, 4 * padded_hidden numbers
  void (*pack_bias)(const T* bias_ih, const T* bias_hh, std::int64_t hidden, T* to);
  // weight (3 hidden, columns) -> packed columns
  void (*pack_columns)(const T* weight, std::int64_t hidden, std::int64_t columns, T* to);

  // input -> input gates, 3 * padded_hidden * rows numbers. Reads rows, hidden, input, input_weights, bias.
  void (*input_gates)(const LayerStep<T>& layer, T* gates);
  void (*step)(const LayerStep<T>& layer);
  void (*gate_gradients)(const LayerGateGradients<T>& layer);
  void (*gate_product)(const GateProduct<T>& product);
  void (*outer_product)(const OuterProduct<T>& product);
  // to (4, hidden) += sums over rows of gate gradients
  void (*bias_sums)(std::int64_t rows, std::int64_t hidden, const T* gate_gradients, T* to);

  void (*sigmoid)(const T* from, std::int64_t count, T* to);
  void (*tanh)(const T* from, std::int64_t count, T* to);
  // For bfloat16 tables: convert factors to the layout that products read. `to` has room for rows * columns elements
  // (for outer_operand: an even number of rows). Return `to` with its row stride, and the given columns.
  Rows<T> (*operand)(std::int64_t rows, const Rows<T>& from, T* to);
  Rows<T> (*outer_operand)(std::int64_t rows, const Rows<T>& from, T* to);
};

// The tables of each family. Call what the processor can run: kernels/usable_kernels.h.
template <typename T>
const KernelTable<T>* Avx512Kernels(bool bfloat16);
template <typename T>
const KernelTable<T>* Avx2Kernels(bool bfloat16);
template <typename T>
const KernelTable<T>* PortableKernels(bool bfloat16);
// With the instruction for pairs of bfloat16.
const KernelTable<float>* Avx512PairKernels();

}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_KERNELS_KERNEL_TABLE_H_
