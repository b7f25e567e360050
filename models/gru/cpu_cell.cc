#include "models/gru/cpu_cell.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <cstring>

namespace plait::gru {
namespace {

// From this many input features on, storing the input's product with the weights is faster than recomputing it at
// each use: reading a row of gates then costs less than its arithmetic.
constexpr std::int64_t kPrecomputeInputs = 48;

constexpr std::int64_t RoundUp(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

// Packed parameters of one layer.
struct PackedLayer {
  at::Tensor input_weights, hidden_weights, bias;  // for Step
  at::Tensor input_columns, hidden_columns;        // for StepAdjoint
};

template <typename T>
class CpuGruCell final : public GruCell {
 public:
  CpuGruCell(const GruConfig& config, const at::TensorOptions& options, const KernelTable<T>* kernels)
      : GruCell(config, options), kernels_(kernels), padded_(kernels->padded_hidden(config.hidden)) {
    TORCH_CHECK(options.dtype() == caffe2::TypeMeta::Make<T>() && options.device().is_cpu(),
                "CpuGruCell: kernels and options differ in dtype or device");
    TORCH_CHECK(kernels->bfloat16 == (config.products == GruProducts::kBFloat16), "CpuGruCell: kernels ",
                kernels->name, " do not form the products asked for");
    for (std::int64_t layer = 0; layer < config.layers; ++layer) layers_.push_back(EmptyLayer(layer));
  }

  using GruCell::PrepareInputs;
  void SetParameters(at::TensorList parameters) override;
  GruInputs PrepareInputs(const at::Tensor& x, std::int64_t first, std::int64_t count) override;
  at::Tensor NewSaved(std::int64_t batch) const override { return Empty(config().layers * SavedSlot(batch)); }
  at::Tensor NewGateGradients(std::int64_t batch) const override {
    return Empty(config().layers * GateSlot(batch));
  }
  void Step(GruStepSize size, const GruInputs& inputs, std::int64_t step, const at::Tensor& state,
            at::Tensor& new_state, at::Tensor* saved) override;
  void StepAdjoint(GruStepSize size, const at::Tensor& saved, const at::Tensor& state,
                   const at::Tensor& lambda_out, at::Tensor& lambda_in, at::Tensor* gate_gradients) override;
  void AddWeightGradients(const GruInputs& inputs, const std::vector<GruGradientTerm>& terms,
                          at::TensorList gradients) override;
  void AddInputGradient(const at::Tensor& gate_gradients, std::int64_t step, at::Tensor& x_gradient) override;

 private:
  std::int64_t hidden() const { return config().hidden; }
  // Elements of a layer in a saved or gate gradient slot; a multiple of 64 bytes.
  std::int64_t SavedSlot(std::int64_t batch) const { return RoundUp(4 * padded_ * batch, 64 / sizeof(T)); }
  std::int64_t GateSlot(std::int64_t batch) const {
    return RoundUp(kernels_->gate_gradients_size(batch, hidden()), 64 / sizeof(T));
  }
  at::Tensor Empty(std::int64_t count) const { return at::empty({count}, options()); }
  static const T* Read(const at::Tensor& tensor) { return tensor.const_data_ptr<T>(); }
  static Rows<T> StepRows(const at::Tensor& x, std::int64_t step) {
    // An empty batch has no address that an offset may be added to.
    return {x.numel() == 0 ? nullptr : Read(x) + step * x.stride(1), x.stride(0), x.size(2)};
  }
  static T* Write(const at::Tensor& tensor) { return tensor.mutable_data_ptr<T>(); }

  PackedLayer EmptyLayer(std::int64_t layer) const;
  void CheckState(const at::Tensor& state, const char* name) const;
  // Scratch memory of at least `count` elements; contents are lost at the next call for the same tensor.
  T* Scratch(at::Tensor& scratch, std::int64_t count);
  // Rows as operands of a product: unchanged, or converted to the kernels' bfloat16 layout in `scratch`.
  Rows<T> Operand(std::int64_t rows, const Rows<T>& from, at::Tensor& scratch);
  void AddOuterProducts(OuterProduct<T> product, std::vector<OuterTerm<T>> terms);
  void AddBiasSums(std::int64_t batch, const std::vector<OuterTerm<T>>& terms, const at::Tensor& bias_ih,
                   const at::Tensor& bias_hh);

  const KernelTable<T>* kernels_;
  std::int64_t padded_;
  std::vector<PackedLayer> layers_;
  at::Tensor input_operand_, state_operand_, outer_operands_, gate_scratch_, bias_sums_;
};

template <typename T>
PackedLayer CpuGruCell<T>::EmptyLayer(std::int64_t layer) const {
  return {Empty(3 * padded_ * InputOf(layer)), Empty(3 * padded_ * hidden()), Empty(4 * padded_),
          Empty(kernels_->packed_columns_size(hidden(), InputOf(layer))),
          Empty(kernels_->packed_columns_size(hidden(), hidden()))};
}

template <typename T>
T* CpuGruCell<T>::Scratch(at::Tensor& scratch, std::int64_t count) {
  if (!scratch.defined() || scratch.numel() < count) scratch = Empty(count);
  return Write(scratch);
}

template <typename T>
Rows<T> CpuGruCell<T>::Operand(std::int64_t rows, const Rows<T>& from, at::Tensor& scratch) {
  return kernels_->bfloat16 ? kernels_->operand(rows, from, Scratch(scratch, rows * from.columns)) : from;
}

template <typename T>
void CpuGruCell<T>::SetParameters(at::TensorList parameters) {
  CheckParameters(parameters);
  for (std::int64_t layer = 0; layer < config().layers; ++layer) {
    const at::Tensor* p = &parameters[4 * layer];
    const PackedLayer& packed = layers_[layer];
    const at::Tensor weight_ih = p[0].contiguous(), weight_hh = p[1].contiguous();
    kernels_->pack_weights(Read(weight_ih), hidden(), InputOf(layer), Write(packed.input_weights));
    kernels_->pack_columns(Read(weight_ih), hidden(), InputOf(layer), Write(packed.input_columns));
    kernels_->pack_weights(Read(weight_hh), hidden(), hidden(), Write(packed.hidden_weights));
    kernels_->pack_columns(Read(weight_hh), hidden(), hidden(), Write(packed.hidden_columns));
    kernels_->pack_bias(Read(p[2].contiguous()), Read(p[3].contiguous()), hidden(), Write(packed.bias));
  }
}

template <typename T>
GruInputs CpuGruCell<T>::PrepareInputs(const at::Tensor& x, std::int64_t first, std::int64_t count) {
  CheckInputs(x);
  GruInputs inputs;
  inputs.x = x.stride(2) == 1 || x.size(2) == 1 ? x : x.contiguous();
  if (config().input < kPrecomputeInputs) return inputs;
  LayerStep<T> layer;
  layer.rows = x.size(0);
  layer.hidden = hidden();
  layer.input_weights = Read(layers_[0].input_weights);
  layer.bias = Read(layers_[0].bias);
  TORCH_CHECK(first >= 0 && count >= 0 && first + count <= x.size(1), "GruCell: inputs of the steps ", first,
              " to ", first + count, " asked for, x has ", x.size(1));
  inputs.first = first;
  inputs.gates = at::empty({count, 3 * padded_ * x.size(0)}, options());
  for (std::int64_t i = 0; i < count; ++i) {
    layer.input = Operand(layer.rows, StepRows(inputs.x, first + i), input_operand_);
    kernels_->input_gates(layer, Write(inputs.gates) + i * inputs.gates.stride(0));
  }
  return inputs;
}

template <typename T>
void CpuGruCell<T>::CheckState(const at::Tensor& state, const char* name) const {
  TORCH_CHECK(state.dim() == 3 && state.size(0) == config().layers && state.size(2) == hidden() &&
                  state.is_contiguous() && state.dtype() == options().dtype(),
              "GruCell: ", name, " must be a contiguous (", config().layers, ", batch, ", hidden(), ") of ",
              options().dtype(), ", is ", state.sizes(), " of ", state.dtype());
}

template <typename T>
void CpuGruCell<T>::Step(GruStepSize size, const GruInputs& inputs, std::int64_t step,
                         const at::Tensor& state, at::Tensor& new_state, at::Tensor* saved) {
  CheckState(state, "state");
  CheckState(new_state, "new_state");
  const std::int64_t batch = state.size(1);
  TORCH_CHECK(inputs.x.size(0) == batch && step >= 0 && step < inputs.x.size(1), "GruCell: step ", step,
              " of inputs ", inputs.x.sizes(), " with a state for batch ", batch);
  LayerStep<T> p;
  p.rows = batch;
  p.hidden = hidden();
  p.implicit = config().kind == GruKind::kImplicit;
  p.dt = static_cast<T>(size.dt);
  p.repeats = size.repeats;
  const std::int64_t prepared = step - inputs.first;
  if (inputs.gates.defined() && prepared >= 0 && prepared < inputs.gates.size(0)) {
    p.input_gates = Read(inputs.gates) + prepared * inputs.gates.stride(0);
  } else {
    p.input = Operand(batch, StepRows(inputs.x, step), input_operand_);
  }
  for (std::int64_t layer = 0; layer < config().layers; ++layer) {
    const std::int64_t offset = layer * batch * hidden();
    p.state = Read(state) + offset;
    p.state_operand = Operand(batch, {p.state, hidden(), hidden()}, state_operand_);
    p.new_state = Write(new_state) + offset;
    p.saved = saved ? Write(*saved) + layer * SavedSlot(batch) : nullptr;
    p.input_weights = Read(layers_[layer].input_weights);
    p.hidden_weights = Read(layers_[layer].hidden_weights);
    p.bias = Read(layers_[layer].bias);
    kernels_->step(p);
    if (layer + 1 == config().layers) break;
    p.input = Operand(batch, {p.new_state, hidden(), hidden()}, input_operand_);
    p.input_gates = nullptr;
  }
}

template <typename T>
void CpuGruCell<T>::StepAdjoint(GruStepSize size, const at::Tensor& saved, const at::Tensor& state,
                                const at::Tensor& lambda_out, at::Tensor& lambda_in,
                                at::Tensor* gate_gradients) {
  CheckState(state, "state");
  CheckState(lambda_out, "lambda_out");
  CheckState(lambda_in, "lambda_in");
  const std::int64_t batch = state.size(1);
  T* lambda = Write(lambda_in);
  if (lambda != Read(lambda_out)) std::memcpy(lambda, Read(lambda_out), lambda_out.nbytes());
  T* gates =
      gate_gradients ? Write(*gate_gradients) : Scratch(gate_scratch_, config().layers * GateSlot(batch));
  LayerGateGradients<T> p;
  p.rows = batch;
  p.hidden = hidden();
  p.implicit = config().kind == GruKind::kImplicit;
  p.dt = static_cast<T>(size.dt);
  p.repeats = size.repeats;
  for (std::int64_t layer = config().layers - 1; layer >= 0; --layer) {
    const std::int64_t offset = layer * batch * hidden();
    p.saved = Read(saved) + layer * SavedSlot(batch);
    p.state = Read(state) + offset;
    p.lambda_out = p.lambda_in = lambda + offset;
    p.gate_gradients = gates + layer * GateSlot(batch);
    kernels_->gate_gradients(p);
    GateProduct<T> product{
        batch,           hidden(), hidden(), true, p.gate_gradients, Read(layers_[layer].hidden_columns),
        lambda + offset, hidden()};
    kernels_->gate_product(product);
    if (layer == 0) break;
    product.hidden_path = false;
    product.packed_columns = Read(layers_[layer].input_columns);
    product.to = lambda + offset - batch * hidden();
    kernels_->gate_product(product);
  }
}

template <typename T>
void CpuGruCell<T>::AddOuterProducts(OuterProduct<T> product, std::vector<OuterTerm<T>> terms) {
  if (kernels_->bfloat16) {
    const std::int64_t size = (product.rows + product.rows % 2) * product.columns;
    T* scratch = Scratch(outer_operands_, size * static_cast<std::int64_t>(terms.size()));
    for (OuterTerm<T>& term : terms) {
      kernels_->outer_operand(product.rows, {term.operand, product.operand_stride, product.columns}, scratch);
      term.operand = scratch;
      scratch += size;
    }
    product.operand_stride = product.columns;
  }
  product.terms = terms.data();
  product.term_count = static_cast<std::int64_t>(terms.size());
  kernels_->outer_product(product);
}

template <typename T>
void CpuGruCell<T>::AddBiasSums(std::int64_t batch, const std::vector<OuterTerm<T>>& terms,
                                const at::Tensor& bias_ih, const at::Tensor& bias_hh) {
  T* sums = Scratch(bias_sums_, 4 * hidden());
  std::memset(sums, 0, 4 * hidden() * sizeof(T));
  for (const OuterTerm<T>& term : terms) kernels_->bias_sums(batch, hidden(), term.gate_gradients, sums);
  T* ih = Write(bias_ih);
  T* hh = Write(bias_hh);
  for (std::int64_t i = 0; i < 3 * hidden(); ++i) ih[i] += sums[i];
  for (std::int64_t i = 0; i < 2 * hidden(); ++i) hh[i] += sums[i];
  for (std::int64_t i = 2 * hidden(); i < 3 * hidden(); ++i) hh[i] += sums[i + hidden()];
}

template <typename T>
void CpuGruCell<T>::AddWeightGradients(const GruInputs& inputs, const std::vector<GruGradientTerm>& terms,
                                       at::TensorList gradients) {
  CheckParameters(gradients);
  if (terms.empty()) return;
  const std::int64_t batch = inputs.x.size(0);
  std::vector<OuterTerm<T>> products(terms.size());
  for (std::int64_t layer = 0; layer < config().layers; ++layer) {
    const at::Tensor* to = &gradients[4 * layer];
    const std::int64_t offset = layer * batch * hidden();
    for (std::size_t i = 0; i < terms.size(); ++i) {
      products[i].gate_gradients = Read(*terms[i].gate_gradients) + layer * GateSlot(batch);
      products[i].operand = layer == 0 ? Read(inputs.x) + terms[i].step * inputs.x.stride(1)
                                       : Read(*terms[i].new_state) + offset - batch * hidden();
    }
    OuterProduct<T> product{
        batch,   hidden(), InputOf(layer), layer == 0 ? inputs.x.stride(0) : hidden(), false,
        nullptr, 0,        Write(to[0])};
    AddOuterProducts(product, products);
    for (std::size_t i = 0; i < terms.size(); ++i) products[i].operand = Read(*terms[i].state) + offset;
    product = {batch, hidden(), hidden(), hidden(), true, nullptr, 0, Write(to[1])};
    AddOuterProducts(product, products);
    AddBiasSums(batch, products, to[2], to[3]);
  }
}

template <typename T>
void CpuGruCell<T>::AddInputGradient(const at::Tensor& gate_gradients, std::int64_t step,
                                     at::Tensor& x_gradient) {
  CheckInputs(x_gradient);
  TORCH_CHECK(x_gradient.stride(2) == 1 || x_gradient.size(2) == 1,
              "GruCell: x_gradient's last dimension must be contiguous");
  kernels_->gate_product({x_gradient.size(0), hidden(), config().input, false, Read(gate_gradients),
                          Read(layers_[0].input_columns), Write(x_gradient) + step * x_gradient.stride(1),
                          x_gradient.stride(0)});
}

}  // namespace

template <typename T>
std::unique_ptr<GruCell> NewCpuGruCell(const GruConfig& config, const at::TensorOptions& options,
                                       const KernelTable<T>* kernels) {
  return std::make_unique<CpuGruCell<T>>(config, options, kernels);
}

template std::unique_ptr<GruCell> NewCpuGruCell(const GruConfig&, const at::TensorOptions&,
                                                const KernelTable<float>*);
template std::unique_ptr<GruCell> NewCpuGruCell(const GruConfig&, const at::TensorOptions&,
                                                const KernelTable<double>*);

}  // namespace plait::gru
