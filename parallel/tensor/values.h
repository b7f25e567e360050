// The distribution of a tensor over the ranks of the tensor axis as a C++ type: code that uses a partial sum as if it
// were a replica does not compile.
//
//   const auto gelu = [](const at::Tensor& h) { return at::gelu(h); };
//   const Shard<1> wide = Map(ColumnLinear(axis, x, {{w1}})[0], gelu);     // (rows, columns of this rank)
//   const Partial sum(at::matmul(wide.local(), w2.t()));                   // (rows, out), to be summed
//   const Residual y = Add(x, ToResidual(axis, sum));                      // Add(x, sum) would not compile
//
// A type describes the value and its gradient; the backward of every collective follows from it (collectives.h):
//
//   type         the value is                       a rank's gradient is
//   Invariant    the same on all ranks              the same on all ranks
//   Replicate    the same on all ranks              partial: the sum over the ranks is the gradient
//   Shard<d>     a slice along dimension d          the same slice of the gradient
//   Partial      partial: the sum is the value      the same on all ranks
//   Residual     Invariant, or with sequence parallelism Shard<0> (tensor_axis.h)
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
  // Declares how `local` is distributed; not checked.
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

// Whether an element-wise f (row-wise for a Residual) may be applied to the parts: not to partial sums.
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

// a + scale_of_b b. Both have the same type: partial sums may be added to each other, but not to a replica.
template <typename State>
Value<State> Add(const Value<State>& a, const Value<State>& b, double scale_of_b = 1) {
  return Value<State>(a.local().add(b.local(), scale_of_b));
}

}  // namespace plait::tensor_parallel

#endif  // PLAIT_PARALLEL_TENSOR_VALUES_H_
