// Parts of ranks against the whole batch.
#include "tools/text_training/block_batches.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace plait::text_training {
namespace {

constexpr int kBlock = 5, kBatch = 7;

std::vector<std::uint16_t> Text() {
  std::vector<std::uint16_t> tokens(101);
  for (std::size_t k = 0; k < tokens.size(); ++k) tokens[k] = static_cast<std::uint16_t>(k);
  return tokens;
}

BlockBatches Make(const std::vector<std::uint16_t>& text, int rank, int ranks) {
  absl::StatusOr<BlockBatches> batches =
      BlockBatches::Make(text, {.block_size = kBlock, .batch_size = kBatch, .seed = 3}, rank, ranks);
  EXPECT_TRUE(batches.ok()) << batches.status();
  return *std::move(batches);
}

TEST(BlockBatchesTest, RanksShareTheBatch) {
  const std::vector<std::uint16_t> text = Text();
  for (const int ranks : {1, 2, 3, 7}) {
    BlockBatches whole = Make(text, 0, 1);
    std::vector<BlockBatches> parts;
    for (int rank = 0; rank < ranks; ++rank) parts.push_back(Make(text, rank, ranks));
    for (int step = 0; step < 4; ++step) {
      const models::Batch batch = whole.Next();
      std::vector<at::Tensor> inputs;
      for (BlockBatches& part : parts) {
        const models::Batch own = part.Next();
        inputs.push_back(own.inputs);
      }
      EXPECT_TRUE(at::equal(at::cat(inputs), batch.inputs)) << ranks << " ranks, step " << step;
    }
  }
}

TEST(BlockBatchesTest, LeavesAreTheSameOnAnyRanks) {
  constexpr int kLeaves = 4;
  const std::vector<std::uint16_t> text = Text();
  BlockBatches whole = Make(text, 0, 1);
  std::vector<std::vector<BlockBatches>> runs;
  for (const int ranks : {1, 2, 4}) {
    runs.emplace_back();
    for (int rank = 0; rank < ranks; ++rank) {
      runs.back().push_back(*BlockBatches::Make(text, {.block_size = kBlock, .batch_size = kBatch, .seed = 3},
                                                rank, ranks, kLeaves));
    }
  }
  for (int step = 0; step < 3; ++step) {
    const at::Tensor batch = whole.Next().inputs;
    for (std::vector<BlockBatches>& ranks : runs) {
      std::vector<at::Tensor> leaves;
      for (BlockBatches& rank : ranks) {
        for (std::size_t k = 0; k < kLeaves / ranks.size(); ++k) {
          const models::Batch leaf = rank.Next();
          EXPECT_EQ(leaf.random.first_sample, 0);
          EXPECT_EQ(leaf.inputs.size(0), leaves.empty() ? 1 : 2);  // of 7 blocks
          leaves.push_back(leaf.inputs);
        }
      }
      EXPECT_TRUE(at::equal(at::cat(leaves), batch)) << ranks.size() << " ranks, step " << step;
    }
  }
}

TEST(BlockBatchesTest, TargetsAreOneFurther) {
  const std::vector<std::uint16_t> text = Text();
  BlockBatches batches = Make(text, 0, 1);
  for (int step = 0; step < 10; ++step) {
    const models::Batch batch = batches.Next();
    ASSERT_EQ(batch.inputs.sizes(), (std::vector<std::int64_t>{kBatch, kBlock}));
    EXPECT_TRUE(at::equal(batch.inputs.add(1), batch.targets));  // the text counts
  }
}

TEST(BlockBatchesTest, GoesOnWhereItStood) {
  const std::vector<std::uint16_t> text = Text();
  BlockBatches batches = Make(text, 1, 2);
  const at::Tensor first = batches.Next().inputs;
  const data::BlockSamplerState state = batches.state();
  const at::Tensor second = batches.Next().inputs;
  EXPECT_FALSE(at::equal(first, second));
  BlockBatches resumed = Make(text, 1, 2);
  ASSERT_TRUE(resumed.Restore(state).ok());
  EXPECT_TRUE(at::equal(resumed.Next().inputs, second));
  resumed.Rewind();
  EXPECT_TRUE(at::equal(resumed.Next().inputs, first));
}

TEST(BlockBatchesTest, BlockLongerThanTheText) {
  const std::vector<std::uint16_t> text = Text();
  const absl::StatusOr<BlockBatches> batches =
      BlockBatches::Make(text, {.block_size = 101, .batch_size = 1}, 0, 1);
  EXPECT_EQ(batches.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace plait::text_training
