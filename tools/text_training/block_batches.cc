#include "tools/text_training/block_batches.h"

#include <ATen/ops/empty.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "data/sampler.h"

namespace plait::text_training {
namespace {

absl::Span<std::int64_t> Numbers(const at::Tensor& tensor) {
  return {tensor.mutable_data_ptr<std::int64_t>(), static_cast<std::size_t>(tensor.numel())};
}

}  // namespace

absl::StatusOr<BlockBatches> BlockBatches::Make(const data::TokenPart& text,
                                                data::BlockSamplerOptions options, int rank, int ranks,
                                                int leaves, TokenRules rules) {
  PLAIT_CHECK(rules.ignored == data::IgnoredTargets::kNone || text.documents != nullptr) << text.name;
  options.tokens = text.tokens.size();
  PLAIT_ASSIGN_OR_RETURN(data::BlockSampler sampler, data::BlockSampler::Make(options));
  return BlockBatches(text, options.block_size, rank, ranks, leaves, rules, std::move(sampler));
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

models::Batch BlockBatches::BatchOf(absl::Span<const std::int64_t> mine) {
  const auto blocks = static_cast<std::int64_t>(mine.size());
  models::Batch batch = {.inputs = at::empty({blocks, block_size_}, at::kLong),
                         .targets = at::empty({blocks, block_size_}, at::kLong)};
  const absl::Span<std::int64_t> inputs = Numbers(batch.inputs), targets = Numbers(batch.targets);
  data::GatherBlocks(text_.tokens, mine, block_size_, inputs, targets);
  CheckIds(inputs);
  CheckIds(targets);
  for (std::size_t i = 0; i < mine.size() && text_.documents != nullptr; ++i) {
    text_.documents->Ignore(rules_.ignored, text_.first + mine[i] + 1,
                            targets.subspan(i * block_size_, block_size_));
  }
  return batch;
}

void BlockBatches::CheckIds(absl::Span<std::int64_t> ids) {
  for (std::int64_t& id : ids) {
    if (id >= 0 && id < rules_.vocabulary) continue;
    if (status_.ok()) {
      status_ = absl::DataLossError(
          absl::StrCat(text_.name, ": token ", id, ", expected 0 to ", rules_.vocabulary - 1,
                       ": another tokenizer's, another type than uint16 without an index, or "
                       "damaged"));
    }
    id = 0;
  }
}

void BlockBatches::Rewind() {
  data::BlockSamplerState state = sampler_.state();
  state.position = 0;
  taken_ = 0;
  PLAIT_CHECK(sampler_.Restore(state).ok()) << "the sampler's own state";
}

}  // namespace plait::text_training
