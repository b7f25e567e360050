#include "tools/gpt_training/block_batches.h"

#include <ATen/ops/empty.h>

#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status_macros.h"
#include "data/sampler.h"

namespace plait::gpt_training {
namespace {

absl::Span<std::int64_t> Numbers(const at::Tensor& tensor) {
  return {tensor.mutable_data_ptr<std::int64_t>(), static_cast<std::size_t>(tensor.numel())};
}

}  // namespace

absl::StatusOr<BlockBatches> BlockBatches::Make(const BlockBatchesOptions& options) {
  PLAIT_ASSIGN_OR_RETURN(data::BlockSampler sampler,
                         data::BlockSampler::Make({.tokens = static_cast<std::int64_t>(options.tokens.size()),
                                                   .block_size = options.block_size,
                                                   .batch_size = options.batch_size,
                                                   .seed = options.seed,
                                                   .name = options.name}));
  return BlockBatches(options, std::move(sampler));
}

models::Batch BlockBatches::Next() {
  const std::vector<std::int64_t> all = sampler_.Next();
  const absl::Span<const std::int64_t> mine = data::ShareOf(all, options_.rank, options_.ranks);
  const auto blocks = static_cast<std::int64_t>(mine.size());
  models::Batch batch = {.inputs = at::empty({blocks, options_.block_size}, at::kLong),
                         .targets = at::empty({blocks, options_.block_size}, at::kLong)};
  data::GatherBlocks(options_.tokens, mine, options_.block_size, Numbers(batch.inputs),
                     Numbers(batch.targets));
  return batch;
}

void BlockBatches::Rewind() {
  data::BlockSamplerState state = sampler_.state();
  state.position = 0;
  PLAIT_CHECK(sampler_.Restore(state).ok()) << "the sampler's own state";
}

}  // namespace plait::gpt_training
