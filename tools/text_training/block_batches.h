// Batches of blocks of a text, drawn for all ranks together; each rank takes its part.
//
//   PLAIT_ASSIGN_OR_RETURN(BlockBatches batches, BlockBatches::Make({text.train}, {...}, rank, ranks));
//   const models::Batch batch = batches.Next();
//
// The parts of all ranks, concatenated in rank order, are the batch, for any number of ranks. Local; every rank must
// make the same calls.
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

// How tokens are checked, and which targets are ignored.
struct TokenRules {
  std::int64_t vocabulary = std::numeric_limits<std::int64_t>::max();  // ids must be below
  data::IgnoredTargets ignored =
      data::IgnoredTargets::kNone;  // values other than kNone require text.documents
};

class BlockBatches {
 public:
  // What `text` refers to must outlive the batches. options.tokens is set to its length; options.batch_size counts
  // blocks over all ranks. `leaves` > 0 (--reproducible): a batch is cut into `leaves` parts, and each rank takes
  // consecutive ones, one per Next(). INVALID_ARGUMENT if a block and the token after it do not fit into the text.
  static absl::StatusOr<BlockBatches> Make(const data::TokenPart& text, data::BlockSamplerOptions options,
                                           int rank, int ranks, int leaves = 0, TokenRules rules = {});

  // This rank's part of the next batch: inputs and targets (sequences, block_size) int64. Targets are the inputs
  // shifted by one token, or data::kIgnoredTarget. With leaves, its next part; each numbers its samples from 0.
  models::Batch Next();
  // DATA_LOSS once a batch of this rank had an id outside the vocabulary; such ids are replaced by 0.
  const absl::Status& status() const { return status_; }

  data::BlockSamplerState state() const { return sampler_.state(); }
  absl::Status Restore(const data::BlockSamplerState& state) { return sampler_.Restore(state); }
  // Restarts from the first batch.
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
