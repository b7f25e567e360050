// What a tensor is on the ranks of the tensor axis, as a C++ type: code that takes a partial sum for a replica
// does not compile.
//
//   const Shard<1> wide = Map(ColumnLinear(axis, x, {{w1}})[0], at::gelu);     // (rows, columns of this rank)
//   const Partial sum = RowLinear(wide, w2);                                    // (rows, out), to be summed
//   const Residual y = Add(x, ToResidual(axis, sum));                           // not Add(x, sum)
//
// A type fixes the value and its gradient, and so what the backward of every collective is (collectives.h):
//
//   type         the value is                       a rank's gradient is
//   Invariant    the same on all ranks              the same on all ranks
//   Replicate    the same on all ranks              a part; the sum over the ranks is the gradient
//   Shard<d>     a slice along dimension d          the slice of it
//   Partial      a part; the sum is the value       the same on all ranks
//   Residual     Invariant, or Shard<0> of rows     as these; which one is the axis's choice (tensor_axis.h)
//
// After Megatron-LM's conjugate operators f and g (Shoeybi et al., arXiv:1909.08053, section 3; Korthikanti
// et al., arXiv:2205.05198, section 4.2.2) and the types of distributed arrays in "SPMD types" of torchtitan.
#ifndef PLAIT_PARALLEL_TENSOR_VALUES_H_
#define PLAIT_PARALLEL_TENSOR_VALUES_H_

#include <ATen/core/Tensor.h>

#include <utility>

namespace plait::tensor_parallel {

template <typename State>
class Value {
 public:
  // Says what `local` is; nothing checks it.
  explicit Value(at::Tensor local) : local_(std::move(local)) {}
  const at::Tensor& local() const { return local_; }

 private:
  at::Tensor local_;
};

struct InvariantState {};
struct ReplicateState {};
struct PartialState {};
struct ResidualState {};
template <int Dimension>
struct ShardState {};

using Invariant = Value<InvariantState>;
using Replicate = Value<ReplicateState>;
using Partial = Value<PartialState>;
using Residual = Value<ResidualState>;
template <int Dimension>
using Shard = Value<ShardState<Dimension>>;

// Whether f of the parts are the parts of f, for any f that acts on each element (on each row of a Residual).
template <typename State>
inline constexpr bool kMaps = true;
template <>
inline constexpr bool kMaps<PartialState> = false;

template <typename State, typename Function>
requires kMaps<State> Value<State> Map(const Value<State>& value, const Function& function) {
  return Value<State>(function(value.local()));
}

template <typename State, typename Function>
requires kMaps<State> Value<State> Map(const Value<State>& a, const Value<State>& b,
                                       const Function& function) {
  return Value<State>(function(a.local(), b.local()));
}

// Both summands are of one type: the sum of partial sums is one, the sum of a replica and a partial sum is
// nothing.
template <typename State>
Value<State> Add(const Value<State>& a, const Value<State>& b, double scale_of_b = 1) {
  return Value<State>(a.local().add(b.local(), scale_of_b));
}

}  // namespace plait::tensor_parallel

#endif  // PLAIT_PARALLEL_TENSOR_VALUES_H_
