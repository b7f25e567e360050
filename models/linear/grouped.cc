#include "models/linear/grouped.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_grouped_mm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "base/check.h"
#include "base/parallel_for.h"
#include "models/linear/kernels/product.h"
#include "models/linear/multiply.h"

namespace plait::linear {
namespace {

std::int64_t Groups(GroupOffsets offsets) { return static_cast<std::int64_t>(offsets.size()) - 1; }
std::int64_t Rows(GroupOffsets offsets) { return offsets.back() - offsets.front(); }
std::int64_t FirstRow(GroupOffsets offsets, std::int64_t group) { return offsets[group] - offsets.front(); }
std::int64_t RowsOf(GroupOffsets offsets, std::int64_t group) { return offsets[group + 1] - offsets[group]; }

at::Tensor RowsOfGroup(const at::Tensor& rows, GroupOffsets offsets, std::int64_t group) {
  return rows.narrow(0, FirstRow(offsets, group), RowsOf(offsets, group));
}

void CheckShape(const char* what, const at::Tensor& tensor, at::IntArrayRef expected, const at::Tensor& out) {
  PLAIT_CHECK(tensor.sizes() == expected && tensor.scalar_type() == out.scalar_type() &&
              tensor.device() == out.device())
      << what << " of shape " << tensor.sizes() << " and type " << tensor.scalar_type() << "; expected "
      << expected << " of " << out.scalar_type() << " on " << out.device();
}

void CheckGroups(GroupOffsets offsets, const at::Tensor& out) {
  PLAIT_CHECK(offsets.size() >= 1 && std::is_sorted(offsets.begin(), offsets.end()))
      << "group offsets are empty or descend";
  PLAIT_CHECK(out.numel() == 0 || out.stride(-1) == 1) << "results with strides " << out.strides();
}

// With a stride of one among the last two.
at::Tensor Dense(const at::Tensor& matrices) {
  return matrices.stride(-1) == 1 || matrices.stride(-2) == 1 ? matrices : matrices.contiguous();
}

// A batch of matrices, `stride` elements apart.
template <typename T>
struct Matrices {
  Matrix<T> first;
  std::int64_t stride = 0;
  Matrix<T> operator[](std::int64_t i) const {
    return {first.data + i * stride, first.row_stride, first.column_stride};
  }
};

template <typename T>
Matrices<T> MatricesOf(const at::Tensor& t) {
  return {{static_cast<const T*>(t.const_data_ptr()), t.stride(-2), t.stride(-1)}, t.stride(0)};
}

template <typename T>
T* OutOf(const at::Tensor& out) {
  return static_cast<T*>(out.mutable_data_ptr());
}

// The cost for ParallelFor of multiplying a row of a panel, tens of columns wide, by a scalar.
constexpr std::int64_t kNumbersOfCost = 2;

// Calls add(products, T{}) with the element type of the kernels, then computes the products that it has added.
template <typename Add>
void MultiplyEach(const at::Tensor& out, const Add& add) {
  if (out.is_meta() || out.numel() == 0) return;
  const auto run = [&]<typename T>(T type) {
    std::vector<Product<T>> products;
    add(products, type);
    UsableProducts<T>()->multiply_each(
        products.data(), static_cast<std::int64_t>(products.size()),
        [](std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>& body) {
          ParallelFor(count, kNumbersOfCost, body);
        });
  };
  out.scalar_type() == at::kFloat ? run(float{}) : run(BFloat16{});
}

// cuBLAS and CUTLASS need rows or columns that are contiguous and begin at multiples of 16 bytes.
bool TakenByGroupedMm(const at::Tensor& t) {
  constexpr std::int64_t kNumbers = 8;
  if (!t.is_cuda() || t.scalar_type() != at::kBFloat16 || t.numel() == 0) return false;
  if (reinterpret_cast<std::uintptr_t>(t.const_data_ptr()) % (kNumbers * sizeof(at::BFloat16)) != 0)
    return false;
  for (std::int64_t i = 0; i < t.dim(); ++i) {
    if (t.stride(i) != 1 && (t.stride(i) == 0 || t.stride(i) % kNumbers != 0)) return false;
  }
  return t.stride(-1) == 1 || t.stride(-2) == 1;
}

// Pinned: else the host would wait for the device.
at::Tensor CopyTo(at::Device device, const at::Tensor& host) {
  return host.pin_memory().to(device, host.scalar_type(), /*non_blocking=*/true);
}

at::Tensor ByGroupedMm(const at::Tensor& left, const at::Tensor& right, GroupOffsets offsets) {
  std::vector<int> ends;
  for (std::int64_t g = 0; g < Groups(offsets); ++g)
    ends.push_back(static_cast<int>(FirstRow(offsets, g + 1)));
  return at::_grouped_mm(left, right, CopyTo(left.device(), at::tensor(ends, at::kInt)));
}

// `bias` expanded to one row per row of its group.
at::Tensor BiasOfRows(const at::Tensor& bias, GroupOffsets offsets) {
  std::vector<std::int64_t> counts;
  for (std::int64_t g = 0; g < Groups(offsets); ++g) counts.push_back(RowsOf(offsets, g));
  return at::repeat_interleave(bias, CopyTo(bias.device(), at::tensor(counts, at::kLong)), 0, Rows(offsets));
}

void MultiplyOneByOne(const at::Tensor& left, const at::Tensor& right, GroupOffsets offsets,
                      const at::Tensor& out, const GroupAddends& addends) {
  for (std::int64_t g = 0; g < Groups(offsets); ++g) {
    if (RowsOf(offsets, g) == 0) continue;
    const at::Tensor left_g = RowsOfGroup(left, offsets, g);
    at::Tensor out_g = RowsOfGroup(out, offsets, g);
    if (addends.adds_to_out) {
      out_g.addmm_(left_g, right[g]);
    } else {
      at::mm_out(out_g, left_g, right[g]);
    }
    if (addends.bias.defined()) out_g.add_(addends.bias[g]);
  }
}

}  // namespace

void MultiplyGroups(const at::Tensor& left, const at::Tensor& right, GroupOffsets offsets,
                    const at::Tensor& out, const GroupAddends& addends, GroupKernels kernels) {
  const at::NoGradGuard not_recorded;
  CheckGroups(offsets, out);
  PLAIT_CHECK(right.dim() == 3) << "right operands of shape " << right.sizes();
  const std::int64_t rows = Rows(offsets), inner = right.size(1), columns = right.size(2);
  CheckShape("left operands", left, {rows, inner}, out);
  CheckShape("right operands", right, {Groups(offsets), inner, columns}, out);
  CheckShape("results", out, {rows, columns}, out);
  if (addends.bias.defined()) CheckShape("bias", addends.bias, {Groups(offsets), columns}, out);
  if (kernels == GroupKernels::kBest && HasOwnProducts(out)) {
    const at::Tensor dense_left = Dense(left), dense_right = Dense(right);
    const at::Tensor bias = addends.bias.defined() ? addends.bias.contiguous() : addends.bias;
    return MultiplyEach(out, [&]<typename T>(std::vector<Product<T>>& products, T) {
      const Matrix<T> lefts = MatricesOf<T>(dense_left).first;
      const Matrices<T> rights = MatricesOf<T>(dense_right);
      for (std::int64_t g = 0; g < Groups(offsets); ++g) {
        if (RowsOf(offsets, g) == 0) continue;
        const std::int64_t first = FirstRow(offsets, g);
        T* to = OutOf<T>(out) + first * out.stride(0);
        products.push_back(
            {.rows = RowsOf(offsets, g),
             .columns = columns,
             .inner = inner,
             .left = {lefts.data + first * lefts.row_stride, lefts.row_stride, lefts.column_stride},
             .right = rights[g],
             .out = to,
             .out_stride = out.stride(0),
             .bias = bias.defined() ? static_cast<const T*>(bias.const_data_ptr()) + g * columns : nullptr,
             .residual = addends.adds_to_out ? to : nullptr});
      }
    });
  }
  if (kernels == GroupKernels::kBest && TakenByGroupedMm(left) && TakenByGroupedMm(right)) {
    const at::Tensor product = ByGroupedMm(left, right, offsets);
    addends.adds_to_out ? out.add_(product) : out.copy_(product);
    if (addends.bias.defined()) out.add_(BiasOfRows(addends.bias, offsets));
    return;
  }
  MultiplyOneByOne(left, right, offsets, out, addends);
}

void GroupWeightGradients(const at::Tensor& left, const at::Tensor& right, GroupOffsets offsets,
                          const at::Tensor& out, GroupKernels kernels) {
  const at::NoGradGuard not_recorded;
  CheckGroups(offsets, out);
  PLAIT_CHECK(out.dim() == 3) << "weight gradients of shape " << out.sizes();
  const std::int64_t rows = Rows(offsets), m = out.size(1), n = out.size(2);
  CheckShape("left operands", left, {rows, m}, out);
  CheckShape("right operands", right, {rows, n}, out);
  CheckShape("weight gradients", out, {Groups(offsets), m, n}, out);
  if (kernels == GroupKernels::kBest && HasOwnProducts(out)) {
    const at::Tensor dense_left = Dense(left), dense_right = Dense(right);
    return MultiplyEach(out, [&]<typename T>(std::vector<Product<T>>& products, T) {
      const Matrix<T> lefts = MatricesOf<T>(dense_left).first, rights = MatricesOf<T>(dense_right).first;
      for (std::int64_t g = 0; g < Groups(offsets); ++g) {
        const std::int64_t first = FirstRow(offsets, g);
        products.push_back(
            {.rows = m,
             .columns = n,
             .inner = RowsOf(offsets, g),
             .left = {lefts.data + first * lefts.row_stride, lefts.column_stride, lefts.row_stride},
             .right = {rights.data + first * rights.row_stride, rights.row_stride, rights.column_stride},
             .out = OutOf<T>(out) + g * out.stride(0),
             .out_stride = out.stride(1)});
      }
    });
  }
  if (kernels == GroupKernels::kBest && TakenByGroupedMm(left) && TakenByGroupedMm(right)) {
    out.copy_(ByGroupedMm(left.t(), right, offsets));
    for (std::int64_t g = 0; g < Groups(offsets); ++g) {
      if (RowsOf(offsets, g) == 0) out[g].zero_();  // some GPUs leave them unset (pytorch issue 172439)
    }
    return;
  }
  for (std::int64_t g = 0; g < Groups(offsets); ++g) {
    at::Tensor out_g = out[g];
    at::mm_out(out_g, RowsOfGroup(left, offsets, g).t(), RowsOfGroup(right, offsets, g));
  }
}

// With own kernels: the product of a row of ones and the rows.
void GroupBiasGradients(const at::Tensor& rows, GroupOffsets offsets, const at::Tensor& out,
                        GroupKernels kernels) {
  const at::NoGradGuard not_recorded;
  CheckGroups(offsets, out);
  PLAIT_CHECK(out.dim() == 2) << "bias gradients of shape " << out.sizes();
  CheckShape("rows", rows, {Rows(offsets), out.size(1)}, out);
  CheckShape("bias gradients", out, {Groups(offsets), out.size(1)}, out);
  if (kernels == GroupKernels::kBest && HasOwnProducts(out)) {
    const at::Tensor ones = at::ones({1, Rows(offsets)}, out.options());
    return GroupWeightGradients(ones.t(), rows, offsets, out.unsqueeze(1), kernels);
  }
  for (std::int64_t g = 0; g < Groups(offsets); ++g) {
    at::Tensor out_g = out[g];
    at::sum_out(out_g, RowsOfGroup(rows, offsets, g), 0);
  }
}

}  // namespace plait::linear
