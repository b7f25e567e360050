// Code that must not compile: a requires-expression of a template is false if its body does not compile.
#include "parallel/tensor/values.h"

#include <gtest/gtest.h>

#include "parallel/tensor/collectives.h"
#include "parallel/tensor/linear.h"
#include "parallel/tensor/vocabulary.h"

namespace plait::tensor_parallel {
namespace {

template <typename A, typename B>
concept Adds = requires(const A& a, const B& b) {
  Add(a, b);
};
template <typename A>
concept Maps = requires(const A& a, at::Tensor (*function)(const at::Tensor&)) {
  Map(a, function);
};
template <typename A>
concept AllReduces = requires(const TensorAxis& axis, const A& a) {
  AllReduce(axis, a);
};
template <typename A>
concept Replicates = requires(const TensorAxis& axis, const A& a) {
  ToReplicate(axis, a);
};
template <typename A>
concept Gathers = requires(const TensorAxis& axis, const A& a) {
  AllGather(axis, a);
};
template <typename A>
concept Scatters = requires(const TensorAxis& axis, const A& a) {
  ReduceScatter<0>(axis, a);
};
template <typename A>
concept JoinsResidual = requires(const TensorAxis& axis, const A& a) {
  ToResidual(axis, a);
};
template <typename A>
concept ColumnInput = requires(const TensorAxis& axis, const A& a) {
  ColumnLinear(axis, a, {});
};
template <typename A>
concept RowInput = requires(const TensorAxis& axis, const A& a) {
  RowLinear(axis, a, {});
};
template <typename A>
concept Logits = requires(const TensorAxis& axis, const A& a) {
  CrossEntropySum(axis, a, 1, at::Tensor());
};

// A partial sum is not a replica.
static_assert(Adds<Partial, Partial> && !Adds<Invariant, Partial> && !Adds<Residual, Partial>);
static_assert(!Adds<Replicate, Invariant> && !Adds<Shard<1>, Replicate>);
static_assert(Maps<Invariant> && Maps<Replicate> && Maps<Shard<1>> && Maps<Residual> && !Maps<Partial>);
static_assert(AllReduces<Partial> && !AllReduces<Invariant> && !AllReduces<Replicate> &&
              !AllReduces<Shard<0>>);
static_assert(Scatters<Partial> && !Scatters<Replicate> && !Scatters<Shard<0>>);
// Only values whose gradient is the same on all ranks may be replicated.
static_assert(Replicates<Invariant> && !Replicates<Partial> && !Replicates<Shard<0>>);
static_assert(Gathers<Shard<0>> && Gathers<Shard<1>> && !Gathers<Partial> && !Gathers<Replicate>);
static_assert(JoinsResidual<Partial> && JoinsResidual<Invariant> && !JoinsResidual<Shard<1>> &&
              !JoinsResidual<Replicate>);
static_assert(ColumnInput<Residual> && !ColumnInput<Partial> && !ColumnInput<Shard<1>>);
static_assert(RowInput<Shard<1>> && !RowInput<Residual> && !RowInput<Partial> && !RowInput<Replicate>);
// Gathered logits would be counted once per rank.
static_assert(Logits<Shard<1>> && !Logits<Replicate> && !Logits<Invariant> && !Logits<Partial>);
// A plain tensor has no distribution until it is declared.
static_assert(!std::is_convertible_v<at::Tensor, Partial> && !std::is_convertible_v<Partial, Invariant>);

TEST(Values, KeepTheirTensor) {
  const at::Tensor tensor = at::Tensor();
  EXPECT_FALSE(Invariant(tensor).local().defined());
}

}  // namespace
}  // namespace plait::tensor_parallel
