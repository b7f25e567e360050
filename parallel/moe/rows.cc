#include "parallel/moe/rows.h"

#include <ATen/Dispatch.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "base/parallel_for.h"
#include "base/vector_loops.h"
#include "models/rowwise/kernels/row_functions.h"

namespace plait::moe {
namespace {

bool OnHost(const at::Tensor& tensor) { return tensor.is_cpu(); }

at::Tensor IndexOn(const at::Tensor& like, const RowNumbers& index) {
  if (index.empty()) return at::empty({0}, like.options().dtype(at::kLong));
  const at::Tensor host = at::from_blob(const_cast<std::int64_t*>(index.data()),
                                        {static_cast<std::int64_t>(index.size())}, at::kLong);
  // Pinned: else the host would wait for the device.
  return host.pin_memory().to(like.device(), at::kLong, /*non_blocking=*/true);
}

// Half-precision sums are accumulated in float32.
template <typename T>
using SumType = std::conditional_t<std::is_same_v<T, double>, double, float>;

// For each of `count` rows the indices i that are added to it, ascending.
struct Addends {
  Addends(const RowNumbers& index, std::int64_t count) : first(count + 1), of_row(index.size()) {
    for (const std::int64_t row : index) ++first[row + 1];
    for (std::int64_t row = 0; row < count; ++row) first[row + 1] += first[row];
    RowNumbers next(first.begin(), first.end() - 1);
    for (std::size_t i = 0; i < index.size(); ++i) of_row[next[index[i]]++] = static_cast<std::int64_t>(i);
  }
  RowNumbers first, of_row;
};

// The i of every row in turns: the first one of each row, then the second one, ... Within a turn rows differ, so that a
// device, which adds in any order, has one order of sums.
struct Turns {
  Turns(const RowNumbers& index, std::int64_t count) : addends(index.size()), rows(index.size()) {
    RowNumbers turns(index.size()), seen(count);
    for (std::size_t i = 0; i < index.size(); ++i) {
      turns[i] = seen[index[i]]++;
      if (turns[i] + 1 == static_cast<std::int64_t>(first.size())) first.push_back(0);
      ++first[turns[i] + 1];
    }
    for (std::size_t turn = 1; turn < first.size(); ++turn) first[turn] += first[turn - 1];
    RowNumbers next = first;
    for (std::size_t i = 0; i < index.size(); ++i) {
      const std::int64_t place = next[turns[i]]++;
      addends[place] = static_cast<std::int64_t>(i);
      rows[place] = index[i];
    }
  }
  RowNumbers first = {0};    // place of each turn, and the end
  RowNumbers addends, rows;  // by place
};

at::Tensor SumOnDevice(const at::Tensor& rows, const RowNumbers& index, std::int64_t count,
                       const at::Tensor& scale) {
  const at::ScalarType type = rows.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const Turns turns(index, count);
  const at::Tensor addends = IndexOn(rows, turns.addends), to = IndexOn(rows, turns.rows);
  at::Tensor sum = at::zeros({count, rows.size(1)}, rows.options().dtype(type));
  for (std::size_t turn = 0; turn + 1 < turns.first.size(); ++turn) {
    const std::int64_t first = turns.first[turn], places = turns.first[turn + 1] - first;
    const at::Tensor of_turn = addends.narrow(0, first, places);
    at::Tensor some = rows.index_select(0, of_turn).to(type);
    if (scale.defined()) some.mul_(scale.index_select(0, of_turn).to(type).unsqueeze(1));
    sum.index_add_(0, to.narrow(0, first, places), some);
  }
  return sum.to(rows.scalar_type());
}

template <typename T>
void AddScaled(SumType<T>* sum, const T* row, std::int64_t width, SumType<T> scale) {
  for (std::int64_t j = 0; j < width; ++j) sum[j] += scale * static_cast<SumType<T>>(row[j]);
}

template <typename T, typename Scale>
void SumOnHost(const at::Tensor& rows, const Addends& addends, const Scale* scale, const at::Tensor& out) {
  const std::int64_t width = rows.size(1);
  const T* const from = rows.const_data_ptr<T>();
  T* const to = out.mutable_data_ptr<T>();
  ParallelFor(out.size(0), width, [&](std::int64_t begin, std::int64_t end) {
    std::vector<SumType<T>> sum(width);
    for (std::int64_t row = begin; row < end; ++row) {
      std::fill(sum.begin(), sum.end(), SumType<T>{0});
      for (std::int64_t a = addends.first[row]; a < addends.first[row + 1]; ++a) {
        const std::int64_t i = addends.of_row[a];
        AddScaled(sum.data(), from + i * width, width,
                  scale == nullptr ? SumType<T>{1} : static_cast<SumType<T>>(scale[i]));
      }
      for (std::int64_t j = 0; j < width; ++j) to[row * width + j] = static_cast<T>(sum[j]);
    }
  });
}

template <typename T, typename Scale>
void BackwardOnHost(const at::Tensor& gradient, const RowNumbers& index, const at::Tensor& rows,
                    const Scale* scale, const ScaledRowGradients& out) {
  const std::int64_t width = rows.size(1);
  const T *const from = gradient.const_data_ptr<T>(), *const row_data = rows.const_data_ptr<T>();
  T* const to = out.rows.mutable_data_ptr<T>();
  Scale* const of_scale = out.scale.mutable_data_ptr<Scale>();
  ParallelFor(rows.size(0), width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T *const g = from + index[i] * width, *const r = row_data + i * width;
      const auto factor = static_cast<SumType<T>>(scale[i]);
      SumType<T> dot = 0;
      PLAIT_INDEPENDENT_ITERATIONS
      for (std::int64_t j = 0; j < width; ++j) {
        const auto value = static_cast<SumType<T>>(g[j]);
        dot += value * static_cast<SumType<T>>(r[j]);
        to[i * width + j] = static_cast<T>(factor * value);
      }
      of_scale[i] = static_cast<Scale>(dot);
    }
  });
}

// Uses this CPU's vector kernels if there are any for T and scales are float32.
template <typename T>
const auto* KernelsFor(const at::Tensor& scale) {
  using Number = std::conditional_t<std::is_same_v<T, at::BFloat16>, rowwise::BFloat16, float>;
  const bool known = (std::is_same_v<T, float> || std::is_same_v<T, at::BFloat16>)&&(
      !scale.defined() || scale.scalar_type() == at::kFloat);
  return known ? rowwise::UsableRows<Number>() : nullptr;
}

template <typename T>
bool SumByKernels(const at::Tensor& rows, const Addends& addends, const at::Tensor& scale,
                  const at::Tensor& out) {
  const auto* const kernels = KernelsFor<T>(scale);
  if (kernels == nullptr) return false;
  using Number = std::conditional_t<std::is_same_v<T, at::BFloat16>, rowwise::BFloat16, float>;
  const rowwise::RowSums<Number> sums{.width = rows.size(1),
                                      .rows = static_cast<const Number*>(rows.const_data_ptr()),
                                      .scale = scale.defined() ? scale.const_data_ptr<float>() : nullptr,
                                      .first_addend = addends.first.data(),
                                      .addends = addends.of_row.data(),
                                      .out = static_cast<Number*>(out.mutable_data_ptr())};
  ParallelFor(out.size(0), sums.width,
              [&](std::int64_t begin, std::int64_t end) { kernels->sum_rows(sums, begin, end); });
  return true;
}

template <typename T>
bool BackwardByKernels(const at::Tensor& gradient, const RowNumbers& index, const at::Tensor& rows,
                       const at::Tensor& scale, const ScaledRowGradients& out) {
  const auto* const kernels = KernelsFor<T>(scale);
  if (kernels == nullptr) return false;
  using Number = std::conditional_t<std::is_same_v<T, at::BFloat16>, rowwise::BFloat16, float>;
  const rowwise::RowSumsBackward<Number> sums{.width = rows.size(1),
                                              .of_out = static_cast<const Number*>(gradient.const_data_ptr()),
                                              .row_of = index.data(),
                                              .rows = static_cast<const Number*>(rows.const_data_ptr()),
                                              .scale = scale.const_data_ptr<float>(),
                                              .of_rows = static_cast<Number*>(out.rows.mutable_data_ptr()),
                                              .of_scale = out.scale.mutable_data_ptr<float>()};
  ParallelFor(rows.size(0), sums.width,
              [&](std::int64_t begin, std::int64_t end) { kernels->sum_rows_backward(sums, begin, end); });
  return true;
}

void CheckRows(const at::Tensor& rows, const RowNumbers& index) {
  PLAIT_CHECK(rows.dim() == 2 && rows.size(0) == static_cast<std::int64_t>(index.size()))
      << "rows of shape " << rows.sizes() << " for " << index.size() << " numbers";
}

}  // namespace

at::Tensor GatherRows(const at::Tensor& rows, const RowNumbers& index) {
  PLAIT_CHECK(rows.dim() == 2) << "rows of shape " << rows.sizes();
  const auto count = static_cast<std::int64_t>(index.size());
  if (!OnHost(rows) && !rows.is_meta()) return at::index_select(rows, 0, IndexOn(rows, index));
  const at::Tensor out = at::empty({count, rows.size(1)}, rows.options());
  if (rows.is_meta()) return out;
  const at::Tensor source = rows.contiguous();
  const std::size_t bytes = rows.size(1) * rows.element_size();
  const char* const from = static_cast<const char*>(source.const_data_ptr());
  char* const to = static_cast<char*>(out.mutable_data_ptr());
  ParallelFor(count, source.size(1), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) std::memcpy(to + i * bytes, from + index[i] * bytes, bytes);
  });
  return out;
}

at::Tensor SumRows(const at::Tensor& rows, const RowNumbers& index, std::int64_t count,
                   const at::Tensor& scale) {
  CheckRows(rows, index);
  if (!OnHost(rows) && !rows.is_meta()) return SumOnDevice(rows, index, count, scale);
  const at::Tensor out = at::empty({count, rows.size(1)}, rows.options());
  if (rows.is_meta()) return out;
  const at::Tensor source = rows.contiguous();
  const Addends addends(index, count);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, rows.scalar_type(), "SumRows", [&] {
    using T = scalar_t;
    const at::Tensor dense_scale = scale.defined() ? scale.contiguous() : scale;
    if (SumByKernels<T>(source, addends, dense_scale, out)) return;
    if (!scale.defined()) return SumOnHost<T, float>(source, addends, nullptr, out);
    AT_DISPATCH_FLOATING_TYPES(scale.scalar_type(), "SumRows of scales", [&] {
      SumOnHost<T, scalar_t>(source, addends, dense_scale.template const_data_ptr<scalar_t>(), out);
    });
  });
  return out;
}

ScaledRowGradients SumRowsBackward(const at::Tensor& gradient, const RowNumbers& index,
                                   const at::Tensor& rows, const at::Tensor& scale) {
  CheckRows(rows, index);
  if (!OnHost(rows) && !rows.is_meta()) {
    const at::Tensor gathered = at::index_select(gradient, 0, IndexOn(rows, index)).to(scale.scalar_type());
    return {(gathered * scale.unsqueeze(1)).to(rows.scalar_type()),
            (gathered * rows.to(scale.scalar_type())).sum(1)};
  }
  const ScaledRowGradients out = {at::empty(rows.sizes(), rows.options()),
                                  at::empty({rows.size(0)}, scale.options())};
  if (rows.is_meta()) return out;
  const at::Tensor dense = gradient.contiguous(), values = rows.contiguous(), scales = scale.contiguous();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, rows.scalar_type(), "SumRowsBackward", [&] {
    using T = scalar_t;
    if (BackwardByKernels<T>(dense, index, values, scales, out)) return;
    AT_DISPATCH_FLOATING_TYPES(scale.scalar_type(), "SumRowsBackward of scales", [&] {
      BackwardOnHost<T, scalar_t>(dense, index, values, scales.template const_data_ptr<scalar_t>(), out);
    });
  });
  return out;
}

}  // namespace plait::moe
