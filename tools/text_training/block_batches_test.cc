// Compares the parts of all ranks with the whole batch.
#include "tools/text_training/block_batches.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "data/text/token_file_writer.h"

namespace plait::text_training {
namespace {

constexpr int kBlock = 5, kBatch = 7;

std::vector<std::uint16_t> Text() {
  std::vector<std::uint16_t> tokens(101);
  for (std::size_t k = 0; k < tokens.size(); ++k) tokens[k] = static_cast<std::uint16_t>(k);
  return tokens;
}

BlockBatches Make(const std::vector<std::uint16_t>& text, int rank, int ranks) {
  absl::StatusOr<BlockBatches> batches = BlockBatches::Make(
      {.tokens = text}, {.block_size = kBlock, .batch_size = kBatch, .seed = 3}, rank, ranks);
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
      runs.back().push_back(*BlockBatches::Make(
          {.tokens = text}, {.block_size = kBlock, .batch_size = kBatch, .seed = 3}, rank, ranks, kLeaves));
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

// Documents of 7 tokens, of which the first 3 are a prompt: every token's number says whether it counts.
TEST(BlockBatchesTest, IgnoredTargetsOfAnyPart) {
  constexpr int kFirst = 13;  // as validation, behind others
  const std::string stem = ::testing::TempDir() + "/documents";
  absl::StatusOr<data::TokenFileWriter> writer =
      data::TokenFileWriter::Create(stem + ".bin", data::TokenType::kUint16);
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (int document = 0; document < 16; ++document) {
    const std::vector<std::int32_t> ids = {0, 1, 2, 3, 4, 5, 6};
    ASSERT_TRUE(writer->AddSequence(absl::MakeSpan(ids).first(3)).ok());
    ASSERT_TRUE(writer->AddSequence(absl::MakeSpan(ids).subspan(3)).ok());
    writer->EndDocument();
  }
  ASSERT_TRUE(writer->Finish(stem + ".idx").ok());
  const auto file = data::TokenFile::Open(stem + ".bin");
  ASSERT_TRUE(file.ok()) << file.status();
  const data::Tokens tokens = (*file)->tokens();
  const data::TokenPart part = {.tokens = tokens.Part(kFirst, tokens.size() - kFirst),
                                .documents = (*file)->documents(),
                                .first = kFirst};
  for (const auto& [ignored, below] :
       {std::pair(data::IgnoredTargets::kNone, 0), std::pair(data::IgnoredTargets::kDocuments, 1),
        std::pair(data::IgnoredTargets::kPrompts, 3)}) {
    BlockBatches batches = *BlockBatches::Make(part, {.block_size = kBlock, .batch_size = kBatch, .seed = 3},
                                               0, 1, 0, {.ignored = ignored});
    for (int step = 0; step < 10; ++step) {
      const models::Batch batch = batches.Next();
      const at::Tensor next = batch.inputs.add(1).remainder(7);
      EXPECT_TRUE(at::equal(batch.targets, next.masked_fill(next.lt(below), -100)));
    }
  }
}

TEST(BlockBatchesTest, IdsOutsideTheVocabulary) {
  const std::vector<std::uint16_t> text = Text();
  const auto make = [&](std::int64_t vocabulary) {
    return *BlockBatches::Make({.tokens = text, .name = "train.bin"}, {.block_size = 100, .batch_size = 1}, 0,
                               1, 0, {.vocabulary = vocabulary});
  };
  BlockBatches all = make(101);
  all.Next();
  EXPECT_TRUE(all.status().ok());
  BlockBatches batches = make(100);  // the last target is token 100
  EXPECT_EQ(batches.Next().targets[0][99].item<std::int64_t>(), 0);
  EXPECT_EQ(batches.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(absl::StartsWith(batches.status().message(), "train.bin: token 100, expected 0 to 99"))
      << batches.status();
}

TEST(BlockBatchesTest, BlockLongerThanTheText) {
  const std::vector<std::uint16_t> text = Text();
  const absl::StatusOr<BlockBatches> batches =
      BlockBatches::Make({.tokens = text}, {.block_size = 101, .batch_size = 1}, 0, 1);
  EXPECT_EQ(batches.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace plait::text_training
