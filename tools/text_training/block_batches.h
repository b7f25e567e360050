// Batches of blocks of a text: drawn for all ranks together, each rank takes its part.
//
//   PLAIT_ASSIGN_OR_RETURN(BlockBatches batches, BlockBatches::Make(text.train, {...}, rank, ranks));
//   const models::Batch batch = batches.Next();
//
// The parts of all ranks in order are the batch, whatever their number. Local; every rank makes the same
// calls.
#ifndef PLAIT_TOOLS_TEXT_TRAINING_BLOCK_BATCHES_H_
#define PLAIT_TOOLS_TEXT_TRAINING_BLOCK_BATCHES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/text/block_sampler.h"
#include "models/block_model.h"

namespace plait::text_training {

class BlockBatches {
 public:
  // `tokens` outlive the batches; options.tokens is their number, options.batch_size counts blocks over all
  // ranks. `leaves` > 0: a batch is cut into so many parts, of which each rank has consecutive ones.
  // InvalidArgument where a block and the token after it do not fit the text.
  static absl::StatusOr<BlockBatches> Make(absl::Span<const std::uint16_t> tokens,
                                           data::BlockSamplerOptions options, int rank, int ranks,
                                           int leaves = 0);

  // (sequences of this rank, block_size) int64, targets one token further. With leaves the next of its parts, of which
  // each numbers its samples from 0.
  models::Batch Next();

  data::BlockSamplerState state() const { return sampler_.state(); }
  absl::Status Restore(const data::BlockSamplerState& state) { return sampler_.Restore(state); }
  // The first batch comes next.
  void Rewind();

 private:
  BlockBatches(absl::Span<const std::uint16_t> tokens, std::int64_t block_size, int rank, int ranks,
               int leaves, data::BlockSampler sampler)
      : tokens_(tokens),
        block_size_(block_size),
        rank_(rank),
        ranks_(ranks),
        leaves_(leaves),
        sampler_(std::move(sampler)) {}
  models::Batch BatchOf(absl::Span<const std::int64_t> begins) const;

  absl::Span<const std::uint16_t> tokens_;
  std::int64_t block_size_;
  int rank_, ranks_, leaves_;
  std::vector<std::int64_t> all_;  // of the batch
  int taken_ = 0;                  // parts of it
  data::BlockSampler sampler_;
};

}  // namespace plait::text_training

#endif  // PLAIT_TOOLS_TEXT_TRAINING_BLOCK_BATCHES_H_
