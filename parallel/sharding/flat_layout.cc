#include "parallel/sharding/flat_layout.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace plait::parallel {
namespace {

std::int64_t RoundUp(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

}  // namespace

FlatLayout FlatLayout::Make(std::vector<FlatParameter> parameters, int ranks) {
  PLAIT_CHECK(ranks >= 1) << "a layout for " << ranks << " ranks";
  FlatLayout layout;
  layout.ranks_ = ranks;
  layout.parameters_ = std::move(parameters);
  layout.order_.resize(layout.parameters_.size());
  std::iota(layout.order_.begin(), layout.order_.end(), std::size_t{0});
  std::stable_partition(layout.order_.begin(), layout.order_.end(),
                        [&](std::size_t i) { return layout.parameters_[i].decays; });
  std::int64_t end = 0;
  for (const std::size_t i : layout.order_) {
    FlatParameter& parameter = layout.parameters_[i];
    parameter.count =
        std::accumulate(parameter.shape.begin(), parameter.shape.end(), std::int64_t{1}, std::multiplies<>());
    parameter.offset = end;
    end = RoundUp(end + parameter.count, kAlignment);
    if (parameter.decays) layout.decayed_end_ = end;
  }
  layout.shard_count_ = RoundUp(end, ranks * kAlignment) / ranks;
  return layout;
}

std::int64_t FlatLayout::parameter_count() const {
  return std::accumulate(parameters_.begin(), parameters_.end(), std::int64_t{0},
                         [](std::int64_t sum, const FlatParameter& p) { return sum + p.count; });
}

std::vector<FlatSlice> FlatLayout::Slices(int rank) const {
  const std::int64_t shard_begin = rank * shard_count_, shard_end = shard_begin + shard_count_;
  std::vector<FlatSlice> slices;
  for (const std::size_t i : order_) {
    const FlatParameter& p = parameters_[i];
    const std::int64_t begin = std::max(p.offset, shard_begin), end = std::min(p.offset + p.count, shard_end);
    if (begin < end) slices.push_back({i, begin - p.offset, end - p.offset, begin - shard_begin});
  }
  return slices;
}

std::int64_t FlatLayout::DecayedCount(int rank) const {
  return std::clamp<std::int64_t>(decayed_end_ - rank * shard_count_, 0, shard_count_);
}

}  // namespace plait::parallel
