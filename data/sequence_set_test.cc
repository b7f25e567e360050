#include "data/sequence_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace plait::data {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

SequenceSplit Numbered(std::int64_t samples) {
  SequenceSplit split{2, 3, std::vector<float>(samples * 6), std::vector<std::int64_t>(samples), {}};
  std::iota(split.x.begin(), split.x.end(), 0.0f);
  std::iota(split.y.begin(), split.y.end(), 100);
  split.subject = split.y;
  return split;
}

TEST(Gather, CopiesSamplesInTheOrderAsked) {
  const SequenceSplit split = Numbered(5);
  std::vector<float> x(12);
  std::vector<std::int64_t> y(2);
  Gather(split, {3, 0}, absl::MakeSpan(x), absl::MakeSpan(y));
  EXPECT_THAT(x, ElementsAre(18, 19, 20, 21, 22, 23, 0, 1, 2, 3, 4, 5));
  EXPECT_THAT(y, ElementsAre(103, 100));
  Gather(split, {}, {}, {});
}

TEST(GatherDeathTest, SizesAndIndicesAreChecked) {
  const SequenceSplit split = Numbered(5);
  std::vector<float> x(6);
  std::vector<std::int64_t> y(1);
  EXPECT_DEATH(Gather(split, {5}, absl::MakeSpan(x), absl::MakeSpan(y)), "5 of 5");
  EXPECT_DEATH(Gather(split, {0}, absl::MakeSpan(x).first(5), absl::MakeSpan(y)), "5 floats for 1 samples");
}

TEST(Subsampled, SpreadsEvenlyAndKeepsAtLeastOne) {
  const SequenceSplit split = Numbered(10);
  EXPECT_THAT(Subsampled(split, 0.5).y, ElementsAre(100, 102, 104, 106, 108));
  EXPECT_THAT(Subsampled(split, 0.3).subject, ElementsAre(100, 103, 106));
  EXPECT_THAT(Subsampled(split, 0.001).x, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(Subsampled(split, 1.0).x, split.x);
}

TEST(Subsampled, KeepsTheShareOfEachLabel) {
  SequenceSplit split = Numbered(60);
  for (std::int64_t i = 0; i < 60; ++i) split.y[i] = i % 6;  // every second sample has an even label
  const SequenceSplit half = Subsampled(split, 0.5);
  for (std::int64_t label = 0; label < 6; ++label) {
    EXPECT_EQ(std::count(half.y.begin(), half.y.end(), label), 5) << label;
  }
  EXPECT_TRUE(std::is_sorted(half.subject.begin(), half.subject.end()));
}

TEST(SequenceSet, DescriptionSaysWhatIsMadeUp) {
  SequenceSet set;
  set.source = "waves";
  EXPECT_EQ(set.description(), "waves");
  set.synthetic = true;
  EXPECT_THAT(set.description(), StartsWith("synthetic"));
}

}  // namespace
}  // namespace plait::data
