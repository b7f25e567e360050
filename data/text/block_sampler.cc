#include "data/text/block_sampler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/seed.h"

namespace plait::data {

absl::StatusOr<BlockSampler> BlockSampler::Make(const BlockSamplerOptions& options) {
  if (options.block_size <= 0 || options.batch_size <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("batches of ", options.batch_size, " blocks of ",
                                                   options.block_size, " tokens: both must be positive"));
  }
  if (options.tokens <= options.block_size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the ", options.name, " text of ", options.tokens, " tokens is too short for a block of ",
        options.block_size, " and the token after it: take a longer text or smaller blocks"));
  }
  return BlockSampler(options);
}

std::int64_t BlockSampler::blocks_per_pass() const { return (options_.tokens - 1) / options_.block_size; }

std::int64_t BlockSampler::Begin(std::int64_t block) const {
  if (options_.order == BlockOrder::kConsecutive) return block % blocks_per_pass() * options_.block_size;
  base::RandomStream stream(base::DeriveSeed(options_.seed, absl::StrCat("blocks ", options_.name), block));
  return stream.Below(options_.tokens - options_.block_size);
}

std::vector<std::int64_t> BlockSampler::Next() {
  std::vector<std::int64_t> begins(options_.batch_size);
  for (std::int64_t& begin : begins) begin = Begin(position_++);
  return begins;
}

absl::Status BlockSampler::Restore(const BlockSamplerState& state) {
  if (state.position < 0 || state.tokens != options_.tokens) {
    return absl::InvalidArgumentError(absl::StrCat("block ", state.position, " of a text of ", state.tokens,
                                                   " tokens does not belong to the ", options_.name,
                                                   " text of ", options_.tokens, " tokens"));
  }
  options_.seed = state.seed;
  position_ = state.position;
  return absl::OkStatus();
}

void GatherBlocks(const Tokens& tokens, absl::Span<const std::int64_t> begins, std::int64_t block_size,
                  absl::Span<std::int64_t> inputs, absl::Span<std::int64_t> targets) {
  const std::size_t expected = begins.size() * block_size;
  PLAIT_CHECK(inputs.size() == expected && targets.size() == expected)
      << inputs.size() << " inputs and " << targets.size() << " targets for " << begins.size()
      << " blocks of " << block_size;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const std::int64_t begin = begins[i];
    PLAIT_CHECK(begin >= 0 && begin + block_size < tokens.size())
        << "block at " << begin << " of " << tokens.size() << " tokens";
    tokens.Copy(begin, inputs.subspan(i * block_size, block_size));
    tokens.Copy(begin + 1, targets.subspan(i * block_size, block_size));
  }
}

}  // namespace plait::data
