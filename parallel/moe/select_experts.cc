#include "parallel/moe/select_experts.h"

#include <ATen/Dispatch.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sort.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/parallel_for.h"

namespace plait::moe {
namespace {

// Inserts column e after all that are at least as large. `columns` and `values` have `count` entries and capacity k.
template <typename T>
inline void Insert(T value, std::int64_t e, int count, int k, T* values, std::int64_t* columns) {
  int place = count < k ? count : k - 1;
  for (; place > 0 && values[place - 1] < value; --place) {
    values[place] = values[place - 1];
    columns[place] = columns[place - 1];
  }
  values[place] = value;
  columns[place] = e;
}

template <typename T>
void SelectOfRow(const T* row, std::int64_t columns, int k, T* best, std::int64_t* selected) {
  if (std::isnan(row[0])) {
    for (int i = 0; i < k; ++i) selected[i] = -1;
    return;
  }
  for (int e = 0; e < k; ++e) Insert<T>(row[e], e, e, k, best, selected);
  for (std::int64_t e = k; e < columns; ++e) {
    if (row[e] > best[k - 1]) Insert<T>(row[e], e, k, k, best, selected);
  }
}

template <typename T>
bool IsFinite(const T* row, std::int64_t columns) {
  bool finite = true;
  for (std::int64_t e = 0; e < columns; ++e) finite &= row[e] - row[e] == 0;
  return finite;
}

}  // namespace

namespace internal {

at::Tensor SelectByOperators(const at::Tensor& values, int k) {
  const at::Tensor order = std::get<1>(at::sort(values, /*stable=*/true, /*dim=*/1, /*descending=*/true));
  return order.narrow(1, 0, k).masked_fill(values.narrow(1, 0, 1).isnan(), -1);
}

NotFinite FindByOperators(const at::Tensor& values) {
  const at::Tensor bad = at::isfinite(values).all(1, /*keepdim=*/true).logical_not();
  const auto rows = bad.sum().item<std::int64_t>();
  if (rows == 0) return {};
  return {at::ones(bad.sizes(), values.options()).masked_fill_(bad, std::numeric_limits<double>::quiet_NaN()),
          rows};
}

}  // namespace internal

at::Tensor SelectExperts(const at::Tensor& values, int k) {
  if (values.is_meta()) return at::empty({values.size(0), k}, values.options().dtype(at::kLong));
  if (!values.is_cpu()) return internal::SelectByOperators(values, k);
  const at::Tensor in = values.contiguous();
  at::Tensor selected = at::empty({in.size(0), k}, in.options().dtype(at::kLong));
  const std::int64_t columns = in.size(1);
  std::int64_t* to = selected.mutable_data_ptr<std::int64_t>();
  AT_DISPATCH_FLOATING_TYPES(in.scalar_type(), "SelectExperts", [&] {
    const scalar_t* from = in.const_data_ptr<scalar_t>();
    ParallelFor(in.size(0), columns, [&](std::int64_t begin, std::int64_t end) {
      std::vector<scalar_t> best(k);
      for (std::int64_t i = begin; i < end; ++i) {
        SelectOfRow(from + i * columns, columns, k, best.data(), to + i * k);
      }
    });
  });
  return selected;
}

NotFinite FindNotFinite(const at::Tensor& values) {
  if (values.is_meta()) return {};
  if (!values.is_cpu()) return internal::FindByOperators(values);
  const at::Tensor in = values.contiguous();
  NotFinite found;
  AT_DISPATCH_FLOATING_TYPES(in.scalar_type(), "FindNotFinite", [&] {
    const scalar_t* from = in.const_data_ptr<scalar_t>();
    for (std::int64_t i = 0; i < in.size(0); ++i) {
      if (IsFinite(from + i * in.size(1), in.size(1))) continue;
      if (!found.mark.defined()) found.mark = at::ones({in.size(0), 1}, in.options());
      found.mark.mutable_data_ptr<scalar_t>()[i] = std::numeric_limits<scalar_t>::quiet_NaN();
      ++found.rows;
    }
  });
  return found;
}

}  // namespace plait::moe
