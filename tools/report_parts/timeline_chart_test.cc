#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/report_parts/timeline_chart.h"

namespace plait::report {
namespace {

using ::testing::HasSubstr;

RankLanes Rank(std::vector<Bar> work, std::vector<Bar> messages) {
  return {0, "rank 0", {{"main", std::move(work)}, {"messages", std::move(messages)}}};
}

// By hand: messages under way in [2, 6] and [8, 9], work in [0, 4] and [5, 8.5].
TEST(TimelineChart, OverlapOfMessagesAndWork) {
  const RankLanes rank = Rank({{"forward", 0, 3}, {"backward", 1, 4}, {"optimizer", 5, 8.5}, {"wait", 4, 5}},
                              {{"all_reduce", 2, 5}, {"all_gather", 4, 6}, {"all_reduce", 8, 9}});
  const Overlap overlap = OverlapOf(rank);
  EXPECT_DOUBLE_EQ(overlap.message_seconds, 5);
  EXPECT_DOUBLE_EQ(overlap.covered_seconds, 2 + 1 + 0.5);
  EXPECT_EQ(OverlapOf(Rank({}, {})).message_seconds, 0);
  EXPECT_EQ(KindOfBar("reduce_scatter[dp]"), BarKind::kMessage);
  EXPECT_EQ(KindOfBar("backward"), BarKind::kBackward);
  EXPECT_EQ(KindOfBar("loss"), BarKind::kOther);
}

Bar Message(double begin, double end, double waited) {
  Bar bar = {"all_reduce", begin, end};
  bar.waited_seconds = waited;
  return bar;
}

// By hand: messages in flight in [2, 6] and [8, 9], of which the rank was blocked in [4, 5], [4.5, 6] and [8, 9]:
// blocked time during a span of backward is exposed all the same, as backward waits inside.
TEST(TimelineChart, ExposedIsWhereTheRankStoodStill) {
  const RankLanes rank =
      Rank({{"forward", 0, 3}, {"backward", 3, 9}}, {Message(2, 5, 1), Message(4, 6, 1.5), Message(8, 9, 1)});
  const Overlap overlap = OverlapOf(rank);
  EXPECT_DOUBLE_EQ(overlap.message_seconds, 5);
  EXPECT_DOUBLE_EQ(overlap.covered_seconds, 2);
  EXPECT_EQ(KindOfBar("waiting"), BarKind::kWaiting);
  const std::string chart =
      TimelineChart({.step = 3, .steps = 9, .seconds = 10, .ranks = {rank}, .note = ""});
  EXPECT_THAT(chart, HasSubstr("messages 5 s, 40.0 % overlapped with computation, 3 s exposed"));
  EXPECT_THAT(chart, HasSubstr("all_reduce: 2 s from 4 s, waited 1.5 s"));
}

TEST(TimelineChart, ManyBarsAndRanksAreThinned) {
  StepTimeline timeline = {.step = 3, .steps = 9, .seconds = 1000, .ranks = {}, .note = ""};
  std::vector<Bar> bars;
  for (int i = 0; i < 2000; ++i) bars.push_back({"forward", 0.5 * i, 0.5 * i + (i == 77 ? 0.5 : 0.1)});
  for (int rank = 0; rank < 40; ++rank) timeline.ranks.push_back(Rank(bars, {}));
  const std::string chart = TimelineChart(timeline, 2);
  EXPECT_THAT(chart, HasSubstr("the first 2 of 40 ranks"));
  EXPECT_THAT(chart, HasSubstr("left:3.85%;width:0.05%")) << "the longest one stays";
  EXPECT_LT(chart.size(), 400000u);
}

}  // namespace
}  // namespace plait::report
