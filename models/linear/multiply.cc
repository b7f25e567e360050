#include "models/linear/multiply.h"

#include <ATen/ops/empty.h>

#include <functional>

#include "base/check.h"
#include "base/parallel_for.h"
#include "models/linear/kernels/product.h"

namespace plait::linear {
namespace {

bool HasUnitStride(const at::Tensor& matrix) { return matrix.stride(0) == 1 || matrix.stride(1) == 1; }

// A matrix of one column may have stride 1 along its rows too; kernels check the column stride first.
template <typename T>
Matrix<T> MatrixOf(const at::Tensor& matrix) {
  return {static_cast<const T*>(matrix.const_data_ptr()), matrix.stride(0), matrix.stride(1)};
}

template <typename T>
const T* DataOf(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<const T*>(tensor.const_data_ptr()) : nullptr;
}

// Multiplications that a kernel does in the time of one element of ParallelFor's cost.
constexpr std::int64_t kMultiplicationsOfNumber = 16;

template <typename T>
void MultiplyInto(const at::Tensor& left, const at::Tensor& right, const Addends& addends,
                  const at::Tensor& out) {
  const Product<T> product{.rows = left.size(0),
                           .columns = right.size(1),
                           .inner = left.size(1),
                           .left = MatrixOf<T>(left),
                           .right = MatrixOf<T>(right),
                           .out = static_cast<T*>(out.mutable_data_ptr()),
                           .out_stride = out.stride(0),
                           .bias = DataOf<T>(addends.bias),
                           .residual = DataOf<T>(addends.residual)};
  const std::int64_t numbers = product.rows * product.columns * product.inner / kMultiplicationsOfNumber;
  UsableProducts<T>()->multiply(
      product, [&](std::int64_t panels, const std::function<void(std::int64_t, std::int64_t)>& body) {
        ParallelFor(panels, numbers / panels, body);
      });
}

// Kernels read it as numbers of the result's type.
void CheckAddend(const char* name, const at::Tensor& addend, at::IntArrayRef sizes, const at::Tensor& out) {
  if (!addend.defined()) return;
  PLAIT_CHECK(addend.sizes() == sizes && addend.scalar_type() == out.scalar_type())
      << "a " << name << " " << addend.toString() << " of shape " << addend.sizes() << "; expected "
      << out.toString() << " of shape " << sizes;
}

}  // namespace

bool HasOwnProducts(const at::Tensor& tensor) {
  if (!(tensor.is_cpu() || tensor.is_meta()) || tensor.layout() != at::kStrided) return false;
  if (tensor.scalar_type() == at::kFloat) return UsableProducts<float>() != nullptr;
  return tensor.scalar_type() == at::kBFloat16 && UsableProducts<BFloat16>() != nullptr;
}

at::Tensor Multiply(const at::Tensor& left, const at::Tensor& right, const Addends& addends) {
  PLAIT_CHECK(left.dim() == 2 && right.dim() == 2 && left.size(1) == right.size(0))
      << "a product of " << left.sizes() << " and " << right.sizes();
  PLAIT_CHECK(left.scalar_type() == right.scalar_type())
      << "a product of " << left.toString() << " and " << right.toString();
  const at::Tensor out = at::empty({left.size(0), right.size(1)}, left.options());
  CheckAddend("bias", addends.bias, {out.size(1)}, out);
  CheckAddend("residual", addends.residual, out.sizes(), out);
  if (out.numel() == 0) return out;
  const at::Tensor dense_left = HasUnitStride(left) ? left : left.contiguous();
  const at::Tensor dense_right = HasUnitStride(right) ? right : right.contiguous();
  Addends dense;
  if (addends.bias.defined()) dense.bias = addends.bias.contiguous();
  if (addends.residual.defined()) dense.residual = addends.residual.contiguous();
  if (left.is_meta()) return out;
  if (left.scalar_type() == at::kFloat) {
    MultiplyInto<float>(dense_left, dense_right, dense, out);
  } else {
    MultiplyInto<BFloat16>(dense_left, dense_right, dense, out);
  }
  return out;
}

}  // namespace plait::linear
