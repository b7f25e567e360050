#include "parallel/plan/meta_kernels.h"

#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

namespace plait::parallel {
namespace {

using at::Tensor;
using at::TensorList;
using MaybeTensor = std::optional<Tensor>;

Tensor OfBoth(const Tensor& a, const Tensor& b) {
  return at::empty(at::infer_size(a.sizes(), b.sizes()), a.options().dtype(at::kBool));
}
Tensor& Itself(Tensor& a, const Tensor&) { return a; }
// In place only: `out` has its size.
Tensor& IntoItself(const Tensor&, const Tensor&, Tensor& out) { return out; }
Tensor& ItselfAlone(Tensor& a) { return a; }
Tensor Truth(const Tensor& a) { return at::empty_like(a, a.options().dtype(at::kBool)); }
Tensor& Filled(Tensor& x, const Tensor&, const at::Scalar&) { return x; }
Tensor& FilledByTensor(Tensor& x, const Tensor&, const Tensor&) { return x; }
Tensor Either(const Tensor& which, const Tensor& a, const Tensor& b) {
  return at::empty(at::infer_size(which.sizes(), at::infer_size(a.sizes(), b.sizes())), a.options());
}
Tensor Selected(const Tensor& x, std::int64_t dimension, const Tensor& index) {
  std::vector<std::int64_t> sizes = x.sizes().vec();
  sizes[at::maybe_wrap_dim(dimension, x.dim())] = index.numel();
  return at::empty(sizes, x.options());
}
Tensor Like(const Tensor& x) { return at::empty_like(x); }
Tensor Flipped(const Tensor& x, at::IntArrayRef) { return at::empty_like(x, at::MemoryFormat::Contiguous); }

using Three = std::tuple<Tensor, Tensor, Tensor>;

Three Normed(const Tensor& x, c10::SymIntArrayRef shape, const MaybeTensor&, const MaybeTensor&, double) {
  std::vector<std::int64_t> rows = x.sizes().vec();
  std::fill(rows.end() - static_cast<std::ptrdiff_t>(shape.size()), rows.end(), 1);
  return {at::empty_like(x, at::MemoryFormat::Contiguous), at::empty(rows, x.options()),
          at::empty(rows, x.options())};
}
Three OfNormed(const Tensor&, const Tensor& x, c10::SymIntArrayRef, const Tensor&, const Tensor&,
               const MaybeTensor& weight, const MaybeTensor& bias, std::array<bool, 3> wanted) {
  const auto like = [](bool wants, const Tensor& of) { return wants ? at::empty_like(of) : Tensor(); };
  return {like(wanted[0], x), like(wanted[1] && weight.has_value(), weight.value_or(x)),
          like(wanted[2] && bias.has_value(), bias.value_or(x))};
}

Tensor OfTable(const Tensor& gradient, const Tensor&, c10::SymInt rows, c10::SymInt, bool) {
  return at::empty({rows.expect_int(), gradient.size(-1)}, gradient.options());
}

// (batch, channels, height, width) and (channels out, channels in, height, width).
Tensor Convolved(const Tensor& x, const Tensor& weight, const MaybeTensor&, c10::SymIntArrayRef stride,
                 c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
                 c10::SymIntArrayRef, c10::SymInt) {
  TORCH_CHECK_NOT_IMPLEMENTED(!transposed, "transposed convolution has no kernel for the meta device");
  const auto sizes =
      at::native::conv_output_size(x.sizes(), weight.sizes(), C10_AS_INTARRAYREF_SLOW(padding),
                                   C10_AS_INTARRAYREF_SLOW(stride), C10_AS_INTARRAYREF_SLOW(dilation));
  return at::empty(sizes, x.options());
}
Three OfConvolved(const Tensor& gradient, const Tensor& x, const Tensor& weight, c10::SymIntArrayRef,
                  c10::SymIntArrayRef, c10::SymIntArrayRef, bool, c10::SymIntArrayRef, c10::SymInt,
                  std::array<bool, 3> wanted) {
  return {wanted[0] ? at::empty_like(x) : Tensor(), wanted[1] ? at::empty_like(weight) : Tensor(),
          wanted[2] ? at::empty({gradient.size(1)}, gradient.options()) : Tensor()};
}

void Adam(TensorList, TensorList, TensorList, TensorList, TensorList, TensorList, double, double, double,
          double, double, bool, bool, const MaybeTensor&, const MaybeTensor&) {}
void Sgd(TensorList, TensorList, TensorList, double, double, double, double, bool, bool, bool,
         const MaybeTensor&, const MaybeTensor&) {}

}  // namespace

void RegisterMetaKernels() {
  static const bool registered = [] {
    static torch::Library aten(torch::Library::IMPL, "aten", c10::DispatchKey::Meta, __FILE__, __LINE__);
    aten.impl("logical_and", OfBoth);
    aten.impl("logical_or", OfBoth);
    aten.impl("logical_and_", Itself);
    aten.impl("logical_or_", Itself);
    aten.impl("logical_not", Truth);
    aten.impl("logical_not_", ItselfAlone);
    aten.impl("masked_fill_.Scalar", Filled);
    aten.impl("masked_fill_.Tensor", FilledByTensor);
    aten.impl("floor_divide.out", IntoItself);
    aten.impl("where.self", Either);
    aten.impl("index_select", Selected);
    aten.impl("abs", Like);
    aten.impl("relu", Like);
    aten.impl("convolution_overrideable", Convolved);
    aten.impl("convolution_backward_overrideable", OfConvolved);
    aten.impl("flip", Flipped);
    aten.impl("native_layer_norm", Normed);
    aten.impl("native_layer_norm_backward", OfNormed);
    aten.impl("embedding_dense_backward", OfTable);
    aten.impl("_fused_adam_", Adam);
    aten.impl("_fused_adamw_", Adam);
    aten.impl("_fused_sgd_", Sgd);
    return true;
  }();
  static_cast<void>(registered);
}

}  // namespace plait::parallel
