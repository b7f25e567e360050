#include "parallel/tensor/collectives.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "base/check.h"
#include "comm/tensor_collectives.h"
#include "parallel/tensor/recorded_value.h"

namespace plait::tensor_parallel {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor Reduced(const TensorAxis& axis, const at::Tensor& x) {
  at::Tensor sum = x.clone(at::MemoryFormat::Contiguous);
  comm::AllReduce(axis.comm(), sum);
  return sum;
}

// (..., D, ...) -> D first, contiguous; and back.
at::Tensor ToFront(const at::Tensor& x, int dimension) { return x.movedim(dimension, 0).contiguous(); }
at::Tensor FromFront(const at::Tensor& x, int dimension) { return x.movedim(0, dimension); }

at::Tensor Gathered(const TensorAxis& axis, const at::Tensor& x, int dimension) {
  return FromFront(comm::AllGather(axis.comm(), ToFront(x, dimension)), dimension);
}

at::Tensor Scattered(const TensorAxis& axis, const at::Tensor& x, int dimension) {
  const at::Tensor rows = ToFront(x, dimension);
  PLAIT_CHECK(rows.size(0) % axis.size() == 0)
      << rows.size(0) << " elements along dimension " << dimension << " for " << axis.size() << " ranks";
  auto sizes = rows.sizes().vec();
  sizes[0] /= axis.size();
  at::Tensor part = at::empty(sizes, rows.options());
  comm::ReduceScatter(axis.comm(), rows, part);
  return FromFront(part, dimension);
}

at::Tensor Sliced(const TensorAxis& axis, const at::Tensor& x, int dimension) {
  const Range part = axis.PartOf(x.size(dimension));
  return x.narrow(dimension, part.begin, part.size());
}

// Parts may differ by one: all are padded to the largest for the all-gather.
at::Tensor Unsliced(const TensorAxis& axis, const at::Tensor& x, int dimension, std::int64_t whole_size) {
  const std::int64_t largest = (whole_size + axis.size() - 1) / axis.size();
  at::Tensor rows = ToFront(x, dimension);
  PLAIT_CHECK(rows.size(0) == axis.PartOf(whole_size).size())
      << rows.size(0) << " elements along dimension " << dimension << " are not this rank's part of "
      << whole_size;
  if (rows.size(0) < largest) {
    auto sizes = rows.sizes().vec();
    sizes[0] = largest - rows.size(0);
    rows = at::cat({rows, at::zeros(sizes, rows.options())});
  }
  const at::Tensor gathered = comm::AllGather(axis.comm(), rows);
  if (largest * axis.size() == whole_size) return FromFront(gathered, dimension);
  variable_list parts;
  for (int r = 0; r < axis.size(); ++r) {
    parts.push_back(gathered.narrow(0, r * largest, PartOf(whole_size, r, axis.size()).size()));
  }
  return FromFront(at::cat(parts), dimension);
}

enum class Operation { kNothing, kAllReduce, kAllGather, kReduceScatter, kSlice, kUnslice };

struct Call {
  TensorAxis axis;
  Operation operation = Operation::kNothing, transpose = Operation::kNothing;
  int dimension = 0;
  std::int64_t whole_size = 0;  // of Slice and Unslice
};

at::Tensor Apply(const Call& call, Operation operation, const at::Tensor& x) {
  switch (operation) {
    case Operation::kAllReduce:
      return Reduced(call.axis, x);
    case Operation::kAllGather:
      return Gathered(call.axis, x, call.dimension);
    case Operation::kReduceScatter:
      return Scattered(call.axis, x, call.dimension);
    case Operation::kSlice:
      return Sliced(call.axis, x, call.dimension);
    case Operation::kUnslice:
      return Unsliced(call.axis, x, call.dimension, call.whole_size);
    case Operation::kNothing:
      break;
  }
  return x;
}

struct CollectiveFunction : torch::autograd::Function<CollectiveFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const Call& call) {
    Record(*context, call);
    // A view of the input would be one to autograd, which then asks for a view's backward.
    const at::Tensor y = Apply(call, call.operation, x);
    return call.operation == Operation::kNothing ? x.view_as(x) : y;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(),
                "A collective of tensor parallelism: its gradient cannot be differentiated again");
    const Call& call = Recorded<Call>(*context);
    return {Apply(call, call.transpose, gradients[0]), at::Tensor()};
  }
};

at::Tensor Run(const Call& call, const at::Tensor& x) {
  return call.axis.split() ? CollectiveFunction::apply(x, call) : x;
}

}  // namespace

Replicate ToReplicate(const TensorAxis& axis, const Invariant& x) {
  return Replicate(Run({axis, Operation::kNothing, Operation::kAllReduce}, x.local()));
}

Invariant AllReduce(const TensorAxis& axis, const Partial& x) {
  return Invariant(Run({axis, Operation::kAllReduce, Operation::kNothing}, x.local()));
}

namespace internal {

at::Tensor AllGather(const TensorAxis& axis, const at::Tensor& x, int dimension) {
  return Run({axis, Operation::kAllGather, Operation::kReduceScatter, dimension}, x);
}

at::Tensor ReduceScatter(const TensorAxis& axis, const at::Tensor& x, int dimension) {
  return Run({axis, Operation::kReduceScatter, Operation::kAllGather, dimension}, x);
}

at::Tensor Slice(const TensorAxis& axis, const at::Tensor& x, int dimension) {
  return Run({axis, Operation::kSlice, Operation::kUnslice, dimension, x.size(dimension)}, x);
}

at::Tensor Unslice(const TensorAxis& axis, const at::Tensor& x, int dimension, std::int64_t whole_size) {
  return Run({axis, Operation::kUnslice, Operation::kSlice, dimension, whole_size}, x);
}

}  // namespace internal

Residual ToResidual(const TensorAxis& axis, const Invariant& x) {
  return Residual(axis.sequence_parallel() ? Slice<0>(axis, x).local() : x.local());
}

Residual ToResidual(const TensorAxis& axis, const Partial& x) {
  return Residual(axis.sequence_parallel() ? ReduceScatter<0>(axis, x).local() : AllReduce(axis, x).local());
}

Replicate FromResidual(const TensorAxis& axis, const Residual& x) {
  return axis.sequence_parallel() ? AllGather(axis, Shard<0>(x.local()))
                                  : ToReplicate(axis, Invariant(x.local()));
}

}  // namespace plait::tensor_parallel
