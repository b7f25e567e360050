// Blocks of consecutive tokens for training a language model: the same for any number of ranks, resumable at
// any batch.
//
//   PLAIT_ASSIGN_OR_RETURN(BlockSampler sampler,
//                          BlockSampler::Make({.tokens = 1003854, .block_size = 256, .batch_size = 64, .seed
//                          = 1}));
//   const std::vector<std::int64_t> batch = sampler.Next();            // on every rank; no messages
//   const auto mine = ShareOf(batch, rank, size);                      // data/sampler.h
//   GatherBlocks(text.train, mine, 256, absl::MakeSpan(x), absl::MakeSpan(y));      // (mine.size(), 256)
//   each BlockSamplerState state = sampler.state();                         // for a checkpoint
//
// The n-th block begins at a place drawn uniformly from 0..tokens-block_size-1 by the stream
// DeriveSeed(seed, "blocks " + name, n) of base/seed.h: with replacement, as nanoGPT (Karpathy 2022) draws.
// It depends on n alone, so that another batch size, micro-batches or ranks change only how the same blocks
// are grouped. Local.
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
  // Blocks side by side from the beginning, no token the target of two; after the last whole one, the first
  // again. For a loss over all of a text: take blocks_per_pass() of them.
  kConsecutive,
};

struct BlockSamplerOptions {
  std::int64_t tokens = 0;      // of the text
  std::int64_t block_size = 0;  // tokens the model sees at once
  std::int64_t batch_size = 0;  // blocks, over all ranks
  std::uint64_t seed = 0;
  std::string name = "train";  // texts of different names draw independently from one seed
  BlockOrder order = BlockOrder::kRandom;
};

// Where the sampler stands.
struct BlockSamplerState {
  std::uint64_t seed = 0;
  std::int64_t tokens = 0;    // of the text: another one is not continued
  std::int64_t position = 0;  // blocks taken

  friend bool operator==(const BlockSamplerState&, const BlockSamplerState&) = default;
};

class BlockSampler {
 public:
  // InvalidArgument where the text is too short for a block and the token after it, or a size is not
  // positive.
  static absl::StatusOr<BlockSampler> Make(const BlockSamplerOptions& options);

  // Where the blocks of the next batch begin; there is always one.
  std::vector<std::int64_t> Next();

  // Whole blocks side by side in the text.
  std::int64_t blocks_per_pass() const;

  BlockSamplerState state() const { return {options_.seed, options_.tokens, position_}; }
  // Goes on from there, with the seed of the state. InvalidArgument where it belongs to another text.
  absl::Status Restore(const BlockSamplerState& state);

 private:
  explicit BlockSampler(const BlockSamplerOptions& options) : options_(options) {}
  std::int64_t Begin(std::int64_t block) const;

  BlockSamplerOptions options_;
  std::int64_t position_ = 0;
};

// inputs[i] are the block_size tokens from begins[i] on, targets[i] those one further: (begins, block_size)
// both, row-major, 64 bits as LibTorch's indices. Sizes must fit, blocks lie within the text.
void GatherBlocks(const Tokens& tokens, absl::Span<const std::int64_t> begins, std::int64_t block_size,
                  absl::Span<std::int64_t> inputs, absl::Span<std::int64_t> targets);

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_BLOCK_SAMPLER_H_
