// Batches of blocks of a text: drawn for all ranks together, each rank takes its part.
//
//   PLAIT_ASSIGN_OR_RETURN(BlockBatches batches, BlockBatches::Make({.tokens = text.train, ...}));
//   const models::Batch batch = batches.Next();
//
// The parts of all ranks in order are the batch, whatever their number. Local; every rank makes the same
// calls.
#ifndef PLAIT_TOOLS_GPT_TRAINING_BLOCK_BATCHES_H_
#define PLAIT_TOOLS_GPT_TRAINING_BLOCK_BATCHES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/text/block_sampler.h"
#include "models/block_model.h"

namespace plait::gpt_training {

struct BlockBatchesOptions {
  absl::Span<const std::uint16_t> tokens;  // outlive the batches
  std::string name = "train";              // of the text: texts draw independently
  std::int64_t block_size = 0;
  std::int64_t batch_size = 0;  // blocks over all ranks
  std::uint64_t seed = 0;
  int rank = 0;
  int ranks = 1;
};

class BlockBatches {
 public:
  // InvalidArgument where a block and the token after it do not fit the text.
  static absl::StatusOr<BlockBatches> Make(const BlockBatchesOptions& options);

  // (sequences of this rank, block_size) int64, targets one token further.
  models::Batch Next();

  data::BlockSamplerState state() const { return sampler_.state(); }
  absl::Status Restore(const data::BlockSamplerState& state) { return sampler_.Restore(state); }
  // The first batch comes next.
  void Rewind();

 private:
  BlockBatches(const BlockBatchesOptions& options, data::BlockSampler sampler)
      : options_(options), sampler_(std::move(sampler)) {}

  BlockBatchesOptions options_;
  data::BlockSampler sampler_;
};

}  // namespace plait::gpt_training

#endif  // PLAIT_TOOLS_GPT_TRAINING_BLOCK_BATCHES_H_
