#include "data/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace plait::data {
namespace {

using ::testing::ElementsAre;

std::vector<std::int64_t> Epoch(Sampler& sampler) {
  std::vector<std::int64_t> all;
  while (const auto batch = sampler.Next()) all.insert(all.end(), batch->begin(), batch->end());
  return all;
}

// Pinned: these numbers must never change, or old checkpoints would resume with other batches. Computed
// independently in Python from the definitions (FNV-1a, SplitMix64, Lemire's bounded numbers, Fisher-Yates).
TEST(Sampler, OrderIsPinned) {
  Sampler sampler({.samples = 7352, .batch_size = 8, .seed = 1234});
  EXPECT_THAT(*sampler.Next(), ElementsAre(4276, 4362, 3891, 3165, 5095, 6490, 620, 2959));
  sampler.NextEpoch();
  EXPECT_THAT(*sampler.Next(), ElementsAre(7251, 6217, 2186, 5380, 3898, 4653, 4493, 2549));
}

TEST(Sampler, EveryEpochHasEverySampleOnceAndTheLastBatchIsShort) {
  Sampler sampler({.samples = 23, .batch_size = 5, .seed = 9});
  EXPECT_EQ(sampler.batches_per_epoch(), 5);
  std::vector<std::int64_t> before;
  for (int epoch = 0; epoch < 3; ++epoch, sampler.NextEpoch()) {
    std::vector<std::size_t> sizes;
    std::vector<std::int64_t> all;
    while (const auto batch = sampler.Next()) {
      sizes.push_back(batch->size());
      all.insert(all.end(), batch->begin(), batch->end());
    }
    EXPECT_THAT(sizes, ElementsAre(5, 5, 5, 5, 3));
    EXPECT_NE(all, before) << "epochs must differ";
    before = all;
    std::sort(all.begin(), all.end());
    for (std::int64_t i = 0; i < 23; ++i) EXPECT_EQ(all[i], i);
  }
}

TEST(Sampler, OrderDependsOnSeedAndEpochNotOnBatchSize) {
  Sampler a({.samples = 100, .batch_size = 7, .seed = 1}), b({.samples = 100, .batch_size = 64, .seed = 1});
  Sampler c({.samples = 100, .batch_size = 7, .seed = 2});
  const std::vector<std::int64_t> order = Epoch(a);
  EXPECT_EQ(order, Epoch(b));
  EXPECT_NE(order, Epoch(c));
}

TEST(Sampler, NoShuffleCountsUp) {
  Sampler sampler({.samples = 4, .batch_size = 3, .seed = 1, .shuffle = false});
  EXPECT_THAT(Epoch(sampler), ElementsAre(0, 1, 2, 3));
}

TEST(Sampler, RestoredStateGoesOnWithTheSameBatches) {
  const SamplerOptions options{.samples = 50, .batch_size = 8, .seed = 3};
  Sampler whole(options);
  whole.NextEpoch();
  whole.Next();
  whole.Next();
  const SamplerState state = whole.state();
  Sampler resumed({.samples = 50, .batch_size = 8, .seed = 999});
  ASSERT_TRUE(resumed.Restore(state).ok());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(resumed.Next(), whole.Next());
  EXPECT_EQ(resumed.Next(), std::nullopt);
  whole.NextEpoch();
  resumed.NextEpoch();
  EXPECT_EQ(resumed.Next(), whole.Next());
  EXPECT_EQ(resumed.state(), whole.state());
}

TEST(Sampler, StateOfAnotherSetIsRefused) {
  Sampler sampler({.samples = 10, .batch_size = 2, .seed = 0});
  EXPECT_EQ(sampler.Restore({0, 0, 11}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(sampler.Restore({0, -1, 0}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(sampler.Restore({0, 0, 10}).ok());
  EXPECT_EQ(sampler.Next(), std::nullopt);
}

TEST(ShareOf, PartsOfAllRanksAreTheBatch) {
  const std::vector<std::int64_t> batch = {5, 3, 9, 1, 7};
  for (std::int64_t size = 1; size <= 8; ++size) {
    std::vector<std::int64_t> joined;
    for (std::int64_t rank = 0; rank < size; ++rank) {
      const absl::Span<const std::int64_t> share = ShareOf(batch, rank, size);
      EXPECT_GE(share.size(), batch.size() / size);
      EXPECT_LE(share.size(), (batch.size() + size - 1) / size);
      joined.insert(joined.end(), share.begin(), share.end());
    }
    EXPECT_EQ(joined, batch);
  }
}

}  // namespace
}  // namespace plait::data
