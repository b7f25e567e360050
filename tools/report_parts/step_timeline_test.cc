#include "tools/report_parts/step_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"

namespace plait::report {
namespace {

using ::testing::HasSubstr;

std::string Write(const std::string& text) {
  const std::string path = testing::TempDir() + "/timeline.json";
  std::ofstream(path) << text;
  return path;
}

std::string Span(const std::string& name, int rank, int track, double begin, double length,
                 const std::string& args = "{}") {
  return absl::StrCat(R"({"ph":"X","name":")", name, R"(","pid":)", rank, R"(,"tid":)", track, R"(,"ts":)",
                      begin, R"(,"dur":)", length, R"(,"args":)", args, "}");
}

std::string Step(int number, int rank, double begin, double length) {
  return Span("step", rank, 0, begin, length, absl::StrCat(R"({"step":)", number, "}"));
}

// Lengths over both ranks: step 7 takes 100, step 8 takes 130 (rank 1 is late), step 9 takes 400; step 10 is
// on one rank only. The median of the three is step 8.
const char kMeta[] = R"x({"ph":"M","name":"process_name","pid":0,"args":{"name":"rank 0 (n1)"}},)x"
                     R"x({"ph":"M","name":"thread_name","pid":0,"tid":1,"args":{"name":"messages"}})x";

std::string Events() {
  return absl::StrCat(Step(7, 0, 0, 100), ",", Step(7, 1, 0, 100), ",", Step(8, 0, 1000, 100), ",",
                      Step(8, 1, 1030, 100), ",", Step(9, 0, 2000, 400), ",", Step(9, 1, 2000, 400), ",",
                      Step(10, 0, 3000, 110), ",", Span("forward", 0, 0, 1000, 40), ",",
                      Span("backward", 0, 0, 1040, 50), ",", Span("inner", 0, 0, 1045, 10), ",",
                      Span("all_reduce", 0, 1, 1080, 80, R"({"bytes":4096,"sequence":3})"), ",",
                      Span("forward", 1, 0, 990, 60), ",", Span("elsewhere", 1, 0, 2000, 10));
}

TEST(StepTimeline, TheMedianStepOfAllRanks) {
  const std::string path = Write(absl::StrCat(R"({"displayTimeUnit":"ms","otherData":{"name":"x","step":3},)",
                                              R"("traceEvents":[)", Events(), ",", kMeta, "]}"));
  const StepTimeline step = *MedianStep(path);
  EXPECT_EQ(step.step, 8);
  EXPECT_EQ(step.steps, 3);
  EXPECT_DOUBLE_EQ(step.seconds, 130e-6);
  EXPECT_EQ(step.note, "");
  ASSERT_EQ(step.ranks.size(), 2u);
  EXPECT_EQ(step.ranks[0].name, "rank 0 (n1)");
  EXPECT_EQ(step.ranks[1].name, "rank 1");
  ASSERT_EQ(step.ranks[0].lanes.size(), 2u);
  const std::vector<Bar>& bars = step.ranks[0].lanes[0].bars;
  ASSERT_EQ(bars.size(), 3u);
  EXPECT_EQ(bars[1].name, "backward");
  EXPECT_DOUBLE_EQ(bars[1].begin_seconds, 40e-6);
  EXPECT_DOUBLE_EQ(bars[1].end_seconds, 90e-6);
  EXPECT_EQ(bars[1].depth, 0);
  EXPECT_EQ(bars[2].name, "inner");
  EXPECT_EQ(bars[2].depth, 1);
  const Lane& messages = step.ranks[0].lanes[1];
  EXPECT_EQ(messages.name, "messages");
  ASSERT_EQ(messages.bars.size(), 1u);
  EXPECT_EQ(messages.bars[0].bytes, 4096);
  EXPECT_DOUBLE_EQ(messages.bars[0].end_seconds, 130e-6) << "cut at the step's end";
  ASSERT_EQ(step.ranks[1].lanes[0].bars.size(), 1u);
  EXPECT_EQ(step.ranks[1].lanes[0].bars[0].begin_seconds, 0) << "cut at its begin";
}

TEST(StepTimeline, ATraceThatIsMissingEventsSaysSo) {
  const StepTimeline step = *MedianStep(Write(absl::StrCat(
      R"({"traceEvents":[)", Events(), R"(],"otherData":{"run":"5","events_dropped_rank_0":"11",)",
      R"("events_dropped_rank_1":"2"}})")));
  EXPECT_EQ(step.step, 8);
  EXPECT_THAT(step.note, HasSubstr("missing 13 events"));
}

// A step from 1000 to 1100 microseconds; waits are at the ends of their spans.
TEST(StepTimeline, HowLongARankStoodStillInTheStep) {
  const StepTimeline step = *MedianStep(Write(absl::StrCat(
      "[", Step(1, 0, 1000, 100), ",", Span("inside", 0, 1, 1010, 40, R"({"waited_ms":0.015})"), ",",
      Span("before", 0, 1, 900, 110, R"({"waited_ms":0.1})"), ",",
      Span("beyond", 0, 1, 1060, 60, R"({"waited_ms":0.05})"), ",",
      Span("behind", 0, 1, 1090, 60, R"({"waited_ms":0.02})"), ",", Span("unknown", 0, 2, 1050, 10), "]")));
  std::map<std::string, double> waited;
  for (const Lane& lane : step.ranks.at(0).lanes) {
    for (const Bar& bar : lane.bars) waited[bar.name] = bar.waited_seconds;
  }
  EXPECT_NEAR(waited.at("inside"), 15e-6, 1e-15);
  EXPECT_NEAR(waited.at("before"), 10e-6, 1e-15) << "90 of the 100 are before the step";
  EXPECT_NEAR(waited.at("beyond"), 30e-6, 1e-15) << "from 1070 to the end of the step";
  EXPECT_EQ(waited.at("behind"), 0) << "from 1130 on";
  EXPECT_EQ(waited.at("unknown"), -1);
}

TEST(StepTimeline, ABareArrayThatEndsInTheMiddle) {
  const StepTimeline step = *MedianStep(Write(absl::StrCat("[", kMeta, ",", Events(), R"(,{"ph":"X","na)")));
  EXPECT_EQ(step.step, 8);
  EXPECT_THAT(step.note, HasSubstr("ends in the middle"));
}

TEST(StepTimeline, WithoutStepsTheWholeTrace) {
  const StepTimeline all =
      *MedianStep(Write(absl::StrCat("[", Span("a", 3, 0, 50, 10), ",", Span("b", 3, 0, 80, 20), "]")));
  EXPECT_EQ(all.step, -1);
  EXPECT_DOUBLE_EQ(all.seconds, 50e-6);
  EXPECT_EQ(all.ranks.at(0).rank, 3);
}

// 0.1 + 0.2 microseconds, rounded to nanoseconds one by one, end after 0.299: still one row. A real overlap
// of 10 ns is two.
TEST(StepTimeline, RoundedNeighboursShareARow) {
  const StepTimeline near = *MedianStep(Write(absl::StrCat(
      "[", Span("a", 0, 0, 0, 0.301), ",", Span("b", 0, 0, 0.299, 1), ",", Span("c", 0, 0, 1.289, 1), "]")));
  const std::vector<Bar>& bars = near.ranks.at(0).lanes.at(0).bars;
  ASSERT_EQ(bars.size(), 3u);
  EXPECT_EQ(bars[1].depth, 0);
  EXPECT_EQ(bars[2].depth, 1);
}

TEST(StepTimeline, UnusableTracesAreNamed) {
  EXPECT_EQ(MedianStep("/nonexistent/trace.json").status().code(), absl::StatusCode::kNotFound);
  for (const char* text :
       {"", "text", "[]", "{\"traceEvents\":[]}", "{\"other\":[{\"ph\":\"X\",\"name\":\"a\"}]}"}) {
    const absl::Status status = MedianStep(Write(text)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("timeline.json: "));
  }
}

TEST(StepTimeline, OnlyRegularFilesAreOpened) {
  const std::string pipe = testing::TempDir() + "/pipe.json";
  std::filesystem::remove(pipe);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {std::string("/dev/null"), testing::TempDir(), pipe}) {
    const absl::Status status = MedianStep(path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << path;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path + ": not a regular file"));
  }
}

TEST(StepTimeline, SpansThatBeginTogetherShareTheDeepestRow) {
  std::string events = Span("a", 0, 0, 0, 10);
  for (int i = 1; i < 100'000; ++i) absl::StrAppend(&events, ",", Span("a", 0, 0, 0, 10));
  const StepTimeline step = *MedianStep(Write(absl::StrCat("[", events, "]")));
  const std::vector<Bar>& bars = step.ranks.at(0).lanes.at(0).bars;
  ASSERT_EQ(bars.size(), 100'000u);
  for (std::size_t i = 0; i < bars.size(); ++i) {
    ASSERT_EQ(bars[i].depth, static_cast<int>(std::min(i, kDeepestBar))) << i;
  }
}

// Numbers beyond 64 bits, and values nested so deeply that copying them would overflow the stack.
TEST(StepTimeline, TracesOfAHostileProgram) {
  const std::string deep(200'000, '['), ends(200'000, ']');
  const absl::StatusOr<StepTimeline> step = MedianStep(Write(
      absl::StrCat("[", Span("a", 0, 0, 0, 10, absl::StrCat(R"({"step":1e300,"deep":)", deep, ends, "}")),
                   R"(,{"ph":"X","name":"b","pid":-1e300,"tid":1e300,"ts":2,"dur":3}])")));
  ASSERT_TRUE(step.ok()) << step.status();
  ASSERT_EQ(step->ranks.size(), 1u);
  EXPECT_EQ(step->ranks[0].lanes.size(), 1u);
}

}  // namespace
}  // namespace plait::report
