// Samples blocks of consecutive tokens for training a language model: the same for any number of ranks, resumable
// at any batch.
//
//   PLAIT_ASSIGN_OR_RETURN(BlockSampler sampler, BlockSampler::Make({.tokens = 1003854, .block_size = 256,
//                                                                    .batch_size = 64, .seed = 1}));
//   const std::vector<std::int64_t> batch = sampler.Next();            // on every rank, no communication
//   const auto mine = ShareOf(batch, rank, size);                      // data/sampler.h
//   GatherBlocks(text.train, mine, 256, absl::MakeSpan(x), absl::MakeSpan(y));      // (mine.size(), 256)
//   BlockSamplerState state = sampler.state();                         // for a checkpoint
//
// The start of block n is drawn uniformly from 0..tokens-block_size-1 with the random stream
// DeriveSeed(seed, "blocks " + name, n) (base/seed.h): with replacement, as in nanoGPT (Karpathy 2022). It depends
// on n only, so batch size, micro-batches and ranks change only how the same blocks are grouped. Local.
#ifndef PLAIT_DATA_TEXT_BLOCK_SAMPLER_H_
#define PLAIT_DATA_TEXT_BLOCK_SAMPLER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/text/tokens.h"

namespace plait::data {

enum class BlockOrder {
  kRandom,
  // Adjacent blocks from the beginning, in which no token is a target twice; starts again after the last whole
  // block. For the loss over a whole text take blocks_per_pass() blocks.
  kConsecutive,
};

struct BlockSamplerOptions {
  std::int64_t tokens = 0;      // length of the text
  std::int64_t block_size = 0;  // tokens the model sees at once
  std::int64_t batch_size = 0;  // blocks, over all ranks
  std::uint64_t seed = 0;
  std::string name = "train";  // samplers of different names draw independently from the same seed
  BlockOrder order = BlockOrder::kRandom;
};

// The sampler's position.
struct BlockSamplerState {
  std::uint64_t seed = 0;
  std::int64_t tokens = 0;    // length of the text, compared by Restore
  std::int64_t position = 0;  // blocks taken

  friend bool operator==(const BlockSamplerState&, const BlockSamplerState&) = default;
};

class BlockSampler {
 public:
  // InvalidArgument if the text is too short for a block and the token after it, or a size is not positive.
  static absl::StatusOr<BlockSampler> Make(const BlockSamplerOptions& options);

  // Returns the first tokens of the next batch_size blocks; never ends.
  std::vector<std::int64_t> Next();

  // Number of adjacent whole blocks in the text: (tokens - 1) / block_size.
  std::int64_t blocks_per_pass() const;

  BlockSamplerState state() const { return {options_.seed, options_.tokens, position_}; }
  // Continues from `state`, with its seed. InvalidArgument if it is for a text of another length.
  absl::Status Restore(const BlockSamplerState& state);

 private:
  explicit BlockSampler(const BlockSamplerOptions& options) : options_(options) {}
  std::int64_t Begin(std::int64_t block) const;

  BlockSamplerOptions options_;
  std::int64_t position_ = 0;
};

// Copies blocks: row i of `inputs` is the block_size tokens from begins[i], row i of `targets` those shifted by one.
// Both are (begins.size(), block_size), row-major. CHECK-fails if a size does not fit, or a block is not within the
// text.
void GatherBlocks(const Tokens& tokens, absl::Span<const std::int64_t> begins, std::int64_t block_size,
                  absl::Span<std::int64_t> inputs, absl::Span<std::int64_t> targets);

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_BLOCK_SAMPLER_H_
