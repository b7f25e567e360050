#include "parallel/moe/router.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "comm/buffer.h"
#include "comm/tensor_collectives.h"

namespace plait::moe {
namespace {

using Counts = std::vector<std::int32_t>;

// Rows of each expert.
Counts CountRows(const at::Tensor& experts, int count, bool meta) {
  Counts rows(count);
  if (meta) {
    for (std::int64_t i = 0; i < experts.numel(); ++i) ++rows[i % count];
    return rows;
  }
  const at::Tensor host = experts.to(at::kCPU).contiguous();
  const auto* const chosen = host.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < host.numel(); ++i) {
    if (chosen[i] >= 0) ++rows[chosen[i]];
  }
  return rows;
}

// All-gather of `mine`: (ranks, counts).
Counts Gathered(const comm::Communicator& comm, const Counts& mine) {
  Counts all(mine.size() * comm.size());
  comm.AllGather(comm::ConstBufferOf(absl::MakeConstSpan(mine)), comm::BufferOf(absl::MakeSpan(all)));
  return all;
}

at::Tensor TensorOf(const std::vector<std::int64_t>& values) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<std::int64_t>());
  return tensor;
}

// Limits a rank's rows to an expert to what is left of `capacity` after `kept_before` rows of lower ranks.
void LimitRows(std::int64_t capacity, std::int64_t kept_before, std::int32_t& rows) {
  rows = static_cast<std::int32_t>(
      std::clamp<std::int64_t>(capacity - kept_before, 0, static_cast<std::int64_t>(rows)));
}

}  // namespace

RoutedTokens RouteTokens(const GateOptions& options, const TokenRanks& ranks, const at::Tensor& logits,
                         const GateContext& context, PassTrace* trace) {
  const int experts = options.experts, all_ranks = ranks.data.size(), me = ranks.data.rank();
  PLAIT_CHECK(ranks.group > 0 && all_ranks % ranks.group == 0)
      << "groups of " << ranks.group << " of " << all_ranks << " ranks";
  PLAIT_CHECK(logits.size(0) * options.k <= std::numeric_limits<std::int32_t>::max())
      << logits.size(0) << " tokens for " << options.k << " experts each are more rows than 32 bits count";
  const auto route = [&] {
    const PhaseClock clock(ForwardOf(trace), &PassTrace::Phases::gate);
    return Route(options, logits, context);
  };
  RoutedTokens routed = {.routing = route(),
                         .census = Census(ranks.group, experts),
                         .loss = {},
                         .rows_of_expert = std::vector<std::int64_t>(experts)};
  const PhaseClock clock(ForwardOf(trace), &PassTrace::Phases::census);
  Counts mine = CountRows(routed.routing.experts, experts, logits.is_meta());
  mine.push_back(static_cast<std::int32_t>(logits.size(0)));
  mine.push_back(static_cast<std::int32_t>(routed.routing.not_finite));
  Counts all = Gathered(ranks.data, mine);
  const auto of = [&](int rank, int number) -> std::int32_t& { return all[rank * mine.size() + number]; };
  for (int rank = 0; rank < all_ranks; ++rank) {
    for (int e = 0; e < experts; ++e) routed.rows_of_expert[e] += of(rank, e);
    routed.tokens += of(rank, experts);
    routed.not_finite += of(rank, experts + 1);
  }
  if (context.training) {
    GlobalLoad load = {.rows_of_expert = TensorOf(routed.rows_of_expert).to(logits.device()),
                       .tokens = routed.tokens,
                       .statistics = LossStatistics(routed.routing)};
    if (load.statistics.defined()) comm::AllReduce(ranks.data, load.statistics);
    routed.loss = BalanceLoss(options, routed.routing, load);
  }
  const std::int64_t capacity = Capacity(options, routed.tokens);
  if (context.training && options.capacity_factor > 0) {
    std::vector<std::int64_t> before_me(experts);
    for (int e = 0; e < experts; ++e) {
      std::int64_t before = 0;
      for (int rank = 0; rank < all_ranks; ++rank) {
        if (rank == me) before_me[e] = before;
        const std::int32_t chosen = of(rank, e);
        LimitRows(capacity, before, of(rank, e));
        routed.dropped += chosen - of(rank, e);
        before += chosen;
      }
    }
    DropOverCapacity(routed.routing, TensorOf(before_me).to(logits.device()), capacity);
  }
  const int first = me / ranks.group * ranks.group;
  for (int rank = 0; rank < ranks.group; ++rank) {
    for (int e = 0; e < experts; ++e) routed.census.at(rank, e) = of(first + rank, e);
  }
  return routed;
}

}  // namespace plait::moe
