#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tools/report_pages/chart_axis.h"
#include "tools/report_pages/html_text.h"
#include "tools/report_pages/line_chart.h"
#include "tools/report_pages/timeline_chart.h"

namespace plait::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> Labels(const ChartAxis& axis, const std::string& units, int most) {
  std::vector<std::string> labels;
  for (const ChartTick& tick : ChartTicks(axis, units, most)) labels.push_back(tick.label);
  return labels;
}

TEST(HtmlText, MarkupAndBadBytesAreHarmless) {
  EXPECT_EQ(Html("<script>\"a\" & 'b'</script>"),
            "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/script&gt;");
  EXPECT_EQ(Html("µ \xE2\x82\xAC \xF0\x9F\x98\x80"), "µ \xE2\x82\xAC \xF0\x9F\x98\x80");
  const std::string replaced = "\xEF\xBF\xBD";
  EXPECT_EQ(Html("\xff<"), replaced + "&lt;");
  // Overlong "<", a surrogate, a character that is cut short, one beyond the last plane.
  EXPECT_EQ(Html("\xC0\xBC"), replaced + replaced);
  EXPECT_EQ(Html("\xED\xA0\x80"), replaced + replaced + replaced);
  EXPECT_EQ(Html("\xE2\x82"), replaced + replaced);
  EXPECT_EQ(Html("\xF5\x80\x80\x80"), replaced + replaced + replaced + replaced);
  EXPECT_EQ(Html(absl::string_view("a\0b\x1b", 4)), "ab");
  EXPECT_EQ(Decimal(12.5), "12.5");
  EXPECT_EQ(Decimal(-0.001), "0");
}

TEST(ChartAxis, OneOutlierDoesNotFlattenTheCurve) {
  std::vector<double> values;
  for (int i = 0; i < 98; ++i) values.push_back(1.5 + 0.001 * i);
  values.push_back(247);
  const Summary summary = Summarize(values);
  const ChartAxis axis = RobustAxis({&summary});
  EXPECT_LT(axis.high, 1.7);
  EXPECT_GT(axis.low, 1.4);
  EXPECT_EQ(ClippedBy(axis, summary).above, 1);
  EXPECT_EQ(ClippedBy(axis, summary).below, 0);
}

TEST(ChartAxis, WhatIsNearIsShown) {
  std::vector<double> values;
  for (int i = 0; i <= 1000; ++i) values.push_back(i);
  values.push_back(1400);
  values.push_back(-400);
  values.push_back(1600);
  const Summary summary = Summarize(values);
  // The core is 10 to 990 or so, its half about 490.
  const ChartAxis axis = RobustAxis({&summary});
  EXPECT_GT(axis.high, 1400);
  EXPECT_LT(axis.low, -400);
  EXPECT_LT(axis.high, 1600);
  EXPECT_EQ(ClippedBy(axis, summary).above, 1);
}

TEST(ChartAxis, ConstantsAndNothing) {
  const Summary constant = Summarize({5, 5, 5}), zero = Summarize({0, 0}), none = Summarize({kNaN});
  EXPECT_LT(RobustAxis({&constant}).low, 5);
  EXPECT_GT(RobustAxis({&constant}).high, 5);
  EXPECT_LT(RobustAxis({&zero}).low, RobustAxis({&zero}).high);
  EXPECT_LT(RobustAxis({&none}).low, RobustAxis({&none}).high);
  // Of a constant the exceptions are all there is to see.
  std::vector<double> values(100, 5);
  values[3] = 9;
  const Summary exception = Summarize(values);
  EXPECT_GE(RobustAxis({&exception}).high, 9);
  const Summary times = Summarize({0.1, 5});
  EXPECT_EQ(RobustAxis({&times}).low, 0) << "no time below 0";
}

TEST(ChartAxis, Ticks) {
  EXPECT_THAT(Labels({0, 10}, "", 6), ElementsAre("0", "2", "4", "6", "8", "10"));
  EXPECT_THAT(Labels({0.0014, 0.0017}, "s", 4), ElementsAre("1.4 ms", "1.5 ms", "1.6 ms", "1.7 ms"));
  EXPECT_THAT(Labels({0, 50000}, "", 6), ElementsAre("0", "10k", "20k", "30k", "40k", "50k"));
  EXPECT_THAT(Labels({-1, 1}, "", 3), ElementsAre("-1", "0", "1"));
  EXPECT_THAT(Labels({0, 4 << 20}, "bytes", 5), ElementsAre("0", "1 MiB", "2 MiB", "3 MiB", "4 MiB"));
  for (const double low : {-3e7, -1.0, 0.0, 1e-9, 12.0, 1e6}) {
    for (const double span : {1e-9, 0.3, 7.0, 1e5}) {
      if (low + span == low) continue;
      const std::vector<std::string> labels = Labels({low, low + span}, "", 5);
      EXPECT_LE(labels.size(), 5u) << low << " " << span;
      EXPECT_GE(labels.size(), 1u) << low << " " << span;
    }
  }
}

RunNumbers RunOf(const std::string& label, std::vector<double> values) {
  RunNumbers run = {.path = label, .label = label};
  run.draws = values.size();
  MetricNumbers numbers = {{.name = "dt", .units = "s", .long_name = "", .statistic = "", .dimension = ""},
                           Summarize(values),
                           Thinned(values, 0, 1200, false)};
  run.metrics.push_back(std::move(numbers));
  return run;
}

TEST(LineChart, MarksWhatItDoesNotShow) {
  std::vector<double> values(100, 0.001);
  for (int i = 0; i < 100; ++i) values[i] += 1e-6 * i;
  values[50] = 0.25;
  values[60] = kNaN;
  values[70] = std::numeric_limits<double>::infinity();
  const std::string chart = LineChart({RunOf("a", values)}, "dt");
  EXPECT_THAT(chart, HasSubstr("1 of 98 values above"));
  EXPECT_THAT(chart, HasSubstr("the largest is 250 ms"));
  EXPECT_THAT(chart, HasSubstr("1 NaN, 1 +Inf"));
  // Three marks, and three stretches of the line: before, between and after the gaps.
  EXPECT_EQ(std::string(chart).find("<polygon"), std::string::npos);
  std::size_t marks = 0, lines = 0;
  for (std::size_t at = 0; (at = chart.find("<path", at)) != std::string::npos; ++at) ++marks;
  for (std::size_t at = 0; (at = chart.find("<polyline", at)) != std::string::npos; ++at) ++lines;
  EXPECT_EQ(marks, 3u);
  EXPECT_EQ(lines, 3u);
}

TEST(LineChart, RunsHaveTheirColoursAndALongOneIsABand) {
  const std::string chart =
      LineChart({RunOf("first", {1, 2, 3}), RunOf("<b>", std::vector<double>(5000, 1.0))}, "dt");
  EXPECT_THAT(chart, HasSubstr("class=\"series c0\" data-name=\"first\""));
  EXPECT_THAT(chart, HasSubstr("class=\"series c1\" data-name=\"&lt;b&gt;\""));
  EXPECT_THAT(chart, HasSubstr("medians of 5 draws"));
  EXPECT_THAT(chart, HasSubstr("<polygon class=\"band\""));
  EXPECT_THAT(chart, Not(HasSubstr("<b>")));
  EXPECT_LT(chart.size(), 100000u);
}

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

// By hand: messages under way in [2, 6] and [8, 9], of which the rank stood still in [4, 5], [4.5, 6] and
// [8, 9]: what lies over a span of backward is exposed all the same, as backward waits inside.
TEST(TimelineChart, ExposedIsWhereTheRankStoodStill) {
  const RankLanes rank =
      Rank({{"forward", 0, 3}, {"backward", 3, 9}}, {Message(2, 5, 1), Message(4, 6, 1.5), Message(8, 9, 1)});
  const Overlap overlap = OverlapOf(rank);
  EXPECT_DOUBLE_EQ(overlap.message_seconds, 5);
  EXPECT_DOUBLE_EQ(overlap.covered_seconds, 2);
  EXPECT_EQ(KindOfBar("waiting"), BarKind::kWaiting);
  const std::string chart =
      TimelineChart({.step = 3, .steps = 9, .seconds = 10, .ranks = {rank}, .note = ""});
  EXPECT_THAT(chart, HasSubstr("messages 5 s, 40.0 % of it while working, 3 s exposed"));
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
