#include "tools/text_training/block_batches.h"

#include <ATen/ops/empty.h>

#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status_macros.h"
#include "data/sampler.h"

namespace plait::text_training {
namespace {

absl::Span<std::int64_t> Numbers(const at::Tensor& tensor) {
  return {tensor.mutable_data_ptr<std::int64_t>(), static_cast<std::size_t>(tensor.numel())};
}

}  // namespace

absl::StatusOr<BlockBatches> BlockBatches::Make(absl::Span<const std::uint16_t> tokens,
                                                data::BlockSamplerOptions options, int rank, int ranks,
                                                int leaves) {
  options.tokens = static_cast<std::int64_t>(tokens.size());
  PLAIT_ASSIGN_OR_RETURN(data::BlockSampler sampler, data::BlockSampler::Make(options));
  return BlockBatches(tokens, options.block_size, rank, ranks, leaves, std::move(sampler));
}

models::Batch BlockBatches::Next() {
  const int of_rank = leaves_ > 0 ? leaves_ / ranks_ : 1;
  if (taken_ == 0) all_ = sampler_.Next();
  const absl::Span<const std::int64_t> mine = data::ShareOf(all_, rank_ * of_rank + taken_, ranks_ * of_rank);
  taken_ = (taken_ + 1) % of_rank;
  models::Batch batch = BatchOf(mine);
  if (leaves_ == 0) batch.random.first_sample = mine.data() - all_.data();
  return batch;
}

models::Batch BlockBatches::BatchOf(absl::Span<const std::int64_t> mine) const {
  const auto blocks = static_cast<std::int64_t>(mine.size());
  models::Batch batch = {.inputs = at::empty({blocks, block_size_}, at::kLong),
                         .targets = at::empty({blocks, block_size_}, at::kLong)};
  data::GatherBlocks(tokens_, mine, block_size_, Numbers(batch.inputs), Numbers(batch.targets));
  return batch;
}

void BlockBatches::Rewind() {
  data::BlockSamplerState state = sampler_.state();
  state.position = 0;
  taken_ = 0;
  PLAIT_CHECK(sampler_.Restore(state).ok()) << "the sampler's own state";
}

}  // namespace plait::text_training
