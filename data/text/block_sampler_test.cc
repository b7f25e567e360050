#include "data/text/block_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "data/sampler.h"

namespace plait::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const BlockSamplerOptions kOptions{.tokens = 1003854, .block_size = 256, .batch_size = 6, .seed = 1234};

std::vector<std::int64_t> Take(BlockSampler& sampler, int batches) {
  std::vector<std::int64_t> all;
  for (int i = 0; i < batches; ++i) {
    const std::vector<std::int64_t> batch = sampler.Next();
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

// Pinned: these numbers must never change, or old checkpoints would resume with other blocks. Computed
// independently in Python from the definitions (FNV-1a, SplitMix64, Lemire's bounded numbers).
TEST(BlockSampler, PlacesArePinned) {
  BlockSampler train = *BlockSampler::Make(kOptions);
  EXPECT_THAT(train.Next(), ElementsAre(11945, 577531, 925467, 765080, 490989, 493515));
  BlockSamplerOptions options = kOptions;
  options.tokens = 111540;
  options.name = "validation";
  EXPECT_THAT(BlockSampler::Make(options)->Next(), ElementsAre(110542, 42242, 90689, 54596, 108099, 60548));
}

TEST(BlockSampler, BatchSizeOnlyGroupsAndRanksOnlyShare) {
  BlockSampler sixes = *BlockSampler::Make(kOptions);
  BlockSamplerOptions options = kOptions;
  options.batch_size = 4;
  BlockSampler fours = *BlockSampler::Make(options);
  const std::vector<std::int64_t> blocks = Take(sixes, 20);
  EXPECT_EQ(blocks, Take(fours, 30));
  for (std::int64_t size = 1; size <= 8; ++size) {
    BlockSampler again = *BlockSampler::Make(kOptions);
    std::vector<std::int64_t> joined;
    for (int step = 0; step < 20; ++step) {
      const std::vector<std::int64_t> batch = again.Next();
      for (std::int64_t rank = 0; rank < size; ++rank) {
        const auto share = ShareOf(batch, rank, size);
        joined.insert(joined.end(), share.begin(), share.end());
      }
    }
    EXPECT_EQ(joined, blocks) << size << " ranks";
  }
}

// Every place is drawn, the last one (whose last target is the text's last token) too. Counts of n draws over
// k places have standard deviation sqrt(n/k (1-1/k)); six of them are exceeded once in 10^9.
TEST(BlockSampler, EveryPlaceIsEquallyLikely) {
  BlockSampler sampler = *BlockSampler::Make({.tokens = 11, .block_size = 4, .batch_size = 10, .seed = 5});
  std::vector<int> counts(7);
  constexpr int kDraws = 70000;
  for (const std::int64_t begin : Take(sampler, kDraws / 10)) ++counts.at(begin);
  const double mean = kDraws / 7.0;
  for (const int count : counts) EXPECT_NEAR(count, mean, 6 * std::sqrt(mean * (1 - 1 / 7.0)));
}

TEST(BlockSampler, RestoredStateGoesOnWithTheSameBlocks) {
  BlockSampler whole = *BlockSampler::Make(kOptions);
  Take(whole, 3);
  const BlockSamplerState state = whole.state();
  BlockSamplerOptions options = kOptions;
  options.seed = 999;
  options.batch_size = 3;
  BlockSampler resumed = *BlockSampler::Make(options);
  ASSERT_TRUE(resumed.Restore(state).ok());
  EXPECT_EQ(resumed.state(), state);
  EXPECT_EQ(Take(resumed, 10), Take(whole, 5));
}

TEST(BlockSampler, ConsecutiveBlocksCoverTheTextOnce) {
  BlockSamplerOptions options{
      .tokens = 14, .block_size = 4, .batch_size = 2, .order = BlockOrder::kConsecutive};
  BlockSampler sampler = *BlockSampler::Make(options);
  EXPECT_EQ(sampler.blocks_per_pass(), 3);
  EXPECT_THAT(Take(sampler, 3), ElementsAre(0, 4, 8, 0, 4, 8));
  // The target of the last token of a block is one further: 13 tokens give three blocks, 12 only two.
  options.tokens = 13;
  EXPECT_EQ(BlockSampler::Make(options)->blocks_per_pass(), 3);
  options.tokens = 12;
  EXPECT_EQ(BlockSampler::Make(options)->blocks_per_pass(), 2);
}

TEST(BlockSampler, Errors) {
  const absl::Status status =
      BlockSampler::Make({.tokens = 256, .block_size = 256, .batch_size = 1}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the train text of 256 tokens is too short for a block of 256"));
  EXPECT_FALSE(BlockSampler::Make({.tokens = 9, .block_size = 0, .batch_size = 1}).ok());
  EXPECT_FALSE(BlockSampler::Make({.tokens = 9, .block_size = 1, .batch_size = 0}).ok());
  BlockSampler sampler = *BlockSampler::Make({.tokens = 257, .block_size = 256, .batch_size = 1});
  EXPECT_THAT(sampler.Next(), ElementsAre(0));
  EXPECT_EQ(sampler.Restore({0, 258, 0}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(sampler.Restore({0, 257, -1}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(sampler.state().position, 1);
}

TEST(GatherBlocks, TargetsAreOneFurther) {
  std::vector<std::uint16_t> tokens(10);
  std::iota(tokens.begin(), tokens.end(), std::uint16_t{65526});
  std::vector<std::int64_t> x(6), y(6);
  GatherBlocks(tokens, {6, 1}, 3, absl::MakeSpan(x), absl::MakeSpan(y));
  EXPECT_THAT(x, ElementsAre(65532, 65533, 65534, 65527, 65528, 65529));
  EXPECT_THAT(y, ElementsAre(65533, 65534, 65535, 65528, 65529, 65530));
  EXPECT_DEATH(GatherBlocks(tokens, {6, 7}, 3, absl::MakeSpan(x), absl::MakeSpan(y)),
               "block at 7 of 10 tokens");
  EXPECT_DEATH(GatherBlocks(tokens, {6}, 3, absl::MakeSpan(x), absl::MakeSpan(y)),
               "6 inputs and 6 targets for 1");
}

}  // namespace
}  // namespace plait::data
