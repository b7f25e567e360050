// Collectives on typed values (values.h), recorded by autograd. The backward of each follows from its types:
// it is the transpose of the forward.
//
//   forward                                backward
//   ToReplicate    Invariant -> Replicate  all-reduce          Megatron's f
//   AllReduce      Partial -> Invariant    identity            Megatron's g
//   AllGather      Shard<d> -> Replicate   reduce-scatter
//   ReduceScatter  Partial -> Shard<d>     all-gather
//   Slice          Invariant -> Shard<d>   all-gather
//   Unslice        Shard<d> -> Invariant   slice
//
// Collective over the axis, in the same order on all ranks; their backward passes too. Sizes along d must be multiples
// of the number of ranks, except for Slice and Unslice, whose parts are TensorAxis::PartOf of the whole. Inputs are not
// changed. On a group of one each is the identity.
#ifndef PLAIT_PARALLEL_TENSOR_COLLECTIVES_H_
#define PLAIT_PARALLEL_TENSOR_COLLECTIVES_H_

#include <cstdint>

#include "parallel/tensor/tensor_axis.h"
#include "parallel/tensor/values.h"

namespace plait::tensor_parallel {

Replicate ToReplicate(const TensorAxis& axis, const Invariant& x);
Invariant AllReduce(const TensorAxis& axis, const Partial& x);

namespace internal {
at::Tensor AllGather(const TensorAxis& axis, const at::Tensor& x, int dimension);
at::Tensor ReduceScatter(const TensorAxis& axis, const at::Tensor& x, int dimension);
at::Tensor Slice(const TensorAxis& axis, const at::Tensor& x, int dimension);
at::Tensor Unslice(const TensorAxis& axis, const at::Tensor& x, int dimension, std::int64_t whole_size);
}  // namespace internal

template <int D>
Replicate AllGather(const TensorAxis& axis, const Shard<D>& x) {
  return Replicate(internal::AllGather(axis, x.local(), D));
}
template <int D>
Shard<D> ReduceScatter(const TensorAxis& axis, const Partial& x) {
  return Shard<D>(internal::ReduceScatter(axis, x.local(), D));
}
template <int D>
Shard<D> Slice(const TensorAxis& axis, const Invariant& x) {
  return Shard<D>(internal::Slice(axis, x.local(), D));
}
// `whole_size`: size along D, summed over the ranks.
template <int D>
Invariant Unslice(const TensorAxis& axis, const Shard<D>& x, std::int64_t whole_size) {
  return Invariant(internal::Unslice(axis, x.local(), D, whole_size));
}

// The residual stream: Invariant (batch * seq, width), or with sequence parallelism Shard<0> (batch * seq / ranks,
// width); batch * seq must then be a multiple of the number of ranks.
Residual ToResidual(const TensorAxis& axis, const Invariant& x);    // identity, or Slice<0>
Residual ToResidual(const TensorAxis& axis, const Partial& x);      // AllReduce, or ReduceScatter<0>
Replicate FromResidual(const TensorAxis& axis, const Residual& x);  // ToReplicate, or AllGather<0>

}  // namespace plait::tensor_parallel

#endif  // PLAIT_PARALLEL_TENSOR_COLLECTIVES_H_
