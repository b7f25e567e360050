// Batches of blocks of a text: drawn for all ranks together, each rank takes its part.
//
//   PLAIT_ASSIGN_OR_RETURN(BlockBatches batches, BlockBatches::Make({text.train}, {...}, rank, ranks));
//   const models::Batch batch = batches.Next();
//
// The parts of all ranks in order are the batch, whatever their number. Local; every rank makes the same
// calls.
#ifndef PLAIT_TOOLS_TEXT_TRAINING_BLOCK_BATCHES_H_
#define PLAIT_TOOLS_TEXT_TRAINING_BLOCK_BATCHES_H_

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/text/block_sampler.h"
#include "data/text/token_file.h"
#include "models/block_model.h"

namespace plait::text_training {

// What is asked of the tokens.
struct TokenRules {
  std::int64_t vocabulary = std::numeric_limits<std::int64_t>::max();  // ids are below
  data::IgnoredTargets ignored = data::IgnoredTargets::kNone;  // others than kNone need text.documents
};

class BlockBatches {
 public:
  // `text` outlives the batches; options.tokens is its length, options.batch_size counts blocks over all
  // ranks. `leaves` > 0: a batch is cut into so many parts, of which each rank has consecutive ones.
  // InvalidArgument where a block and the token after it do not fit the text.
  static absl::StatusOr<BlockBatches> Make(const data::TokenPart& text, data::BlockSamplerOptions options,
                                           int rank, int ranks, int leaves = 0, TokenRules rules = {});

  // (sequences of this rank, block_size) int64, targets one token further, or data::kIgnoredTarget. With leaves the next of
  // its parts, of which each numbers its samples from 0.
  models::Batch Next();
  // DataLoss since a batch of this rank has had an id outside the vocabulary, for which it has 0.
  const absl::Status& status() const { return status_; }

  data::BlockSamplerState state() const { return sampler_.state(); }
  absl::Status Restore(const data::BlockSamplerState& state) { return sampler_.Restore(state); }
  // The first batch comes next.
  void Rewind();

 private:
  BlockBatches(data::TokenPart text, std::int64_t block_size, int rank, int ranks, int leaves,
               TokenRules rules, data::BlockSampler sampler)
      : text_(std::move(text)),
        block_size_(block_size),
        rank_(rank),
        ranks_(ranks),
        leaves_(leaves),
        rules_(rules),
        sampler_(std::move(sampler)) {}
  models::Batch BatchOf(absl::Span<const std::int64_t> begins);
  void CheckIds(absl::Span<std::int64_t> ids);

  data::TokenPart text_;
  std::int64_t block_size_;
  int rank_, ranks_, leaves_;
  TokenRules rules_;
  absl::Status status_;
  std::vector<std::int64_t> all_;  // of the batch
  int taken_ = 0;                  // parts of it
  data::BlockSampler sampler_;
};

}  // namespace plait::text_training

#endif  // PLAIT_TOOLS_TEXT_TRAINING_BLOCK_BATCHES_H_
