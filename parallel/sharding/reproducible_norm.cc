#include "parallel/sharding/reproducible_norm.h"

#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/exact_sum.h"

namespace plait::parallel {
namespace {

constexpr std::int64_t kBlock = FlatLayout::kAlignment;

// Not inlined: the same code, and so the same rounding, for whole blocks and for the last one of a parameter.
template <typename T>
__attribute__((noinline)) double SquareOfBlock(const T* values) {
  double squares[kBlock];
  for (std::int64_t i = 0; i < kBlock; ++i) squares[i] = static_cast<double>(values[i]) * values[i];
  for (std::int64_t width = kBlock / 2; width > 0; width /= 2) {
    for (std::int64_t i = 0; i < width; ++i) squares[i] += squares[i + width];
  }
  return squares[0];
}

template <typename T>
void AddSquares(const T* values, std::int64_t count, base::ExactSum& sum) {
  const std::int64_t whole = count / kBlock * kBlock;
  for (std::int64_t begin = 0; begin < whole; begin += kBlock) sum.Add(SquareOfBlock(values + begin));
  if (whole == count) return;
  T rest[kBlock] = {};
  std::copy(values + whole, values + count, rest);
  sum.Add(SquareOfBlock(rest));
}

}  // namespace

double ReproducibleNorm(const std::vector<Shard>& shards, const comm::Communicator& world) {
  base::ExactSum sum;
  for (const Shard& shard : shards) {
    for (const FlatSlice& slice : shard.layout->Slices(shard.rank)) {
      if (!shard.primary[slice.parameter] || shard.gradient.is_meta()) continue;
      AT_DISPATCH_FLOATING_TYPES(shard.gradient.scalar_type(), "gradient norm", [&] {
        AddSquares(shard.gradient.const_data_ptr<scalar_t>() + slice.shard_offset, slice.end - slice.begin,
                   sum);
      });
    }
  }
  if (world.size() > 1) world.AllReduce(comm::BufferOf(sum.Limbs()));
  return std::sqrt(sum.Value());
}

}  // namespace plait::parallel
