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
                                                data::BlockSamplerOptions options, int rank, int ranks) {
  options.tokens = static_cast<std::int64_t>(tokens.size());
  PLAIT_ASSIGN_OR_RETURN(data::BlockSampler sampler, data::BlockSampler::Make(options));
  return BlockBatches(tokens, options.block_size, rank, ranks, std::move(sampler));
}

models::Batch BlockBatches::Next() {
  const std::vector<std::int64_t> all = sampler_.Next();
  const absl::Span<const std::int64_t> mine = data::ShareOf(all, rank_, ranks_);
  const auto blocks = static_cast<std::int64_t>(mine.size());
  models::Batch batch = {.inputs = at::empty({blocks, block_size_}, at::kLong),
                         .targets = at::empty({blocks, block_size_}, at::kLong)};
  batch.random.first_sample = mine.data() - all.data();
  data::GatherBlocks(tokens_, mine, block_size_, Numbers(batch.inputs), Numbers(batch.targets));
  return batch;
}

void BlockBatches::Rewind() {
  data::BlockSamplerState state = sampler_.state();
  state.position = 0;
  PLAIT_CHECK(sampler_.Restore(state).ok()) << "the sampler's own state";
}

}  // namespace plait::text_training
