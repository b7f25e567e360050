#include "data/trace/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <vector>

#include "data/hdf5/atomic_file.h"
#include "data/trace/chrome_trace.h"

namespace plait::data {
namespace {

using ::testing::ElementsAre;
using Json = nlohmann::json;

RankEvents Rank(int rank, std::vector<TraceEvent> events) {
  return {
      .rank = rank, .host = "h", .names = {"a", "b"}, .tracks = {"main", "dp"}, .events = std::move(events)};
}

// Written, and read as any JSON parser reads it.
Json Written(const std::vector<RankEvents>& ranks, const std::map<std::string, std::string>& run = {}) {
  const std::string path = testing::TempDir() + "/trace.json";
  EXPECT_TRUE(WriteChromeTrace(path, ranks, run).ok());
  return Json::parse(*ReadWholeFile(path));
}

std::vector<Json> OfPhase(const Json& trace, const std::string& phase) {
  std::vector<Json> found;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == phase) found.push_back(event);
  }
  return found;
}

// Perfetto's rule: of two spans of a thread one encloses the other, or they do not touch.
void ExpectNested(const Json& trace) {
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> open;
  for (const Json& span : OfPhase(trace, "X")) {
    const double begin = span.at("ts"), end = begin + span.at("dur").get<double>();
    auto& stack = open[{span.at("pid"), span.at("tid")}];
    EXPECT_GE(begin, stack.empty() ? 0 : stack.back().first) << "not sorted";
    // ts and dur are whole nanoseconds in decimal: their sum is off by rounding only.
    const double rounding = 4e-16 * end;
    while (!stack.empty() && stack.back().second <= begin + rounding) stack.pop_back();
    if (!stack.empty()) {
      EXPECT_LE(end, stack.back().second + rounding) << span.dump();
    }
    stack.emplace_back(begin, end);
  }
}

TEST(Trace, RecordsSpansThatNest) {
  Trace trace;
  {
    TraceSpan step(&trace, "step", {.step = 7});
    { TraceSpan forward(&trace, "forward"); }
    { TraceSpan backward(&trace, "backward"); }
  }
  const RankEvents events = trace.Events();
  ASSERT_EQ(events.events.size(), 3u);
  EXPECT_EQ(events.names[events.events[0].name], "forward");
  EXPECT_EQ(events.names[events.events[2].name], "step");
  EXPECT_EQ(events.events[2].arguments.step, 7);
  EXPECT_LE(events.events[2].begin_ns, events.events[0].begin_ns);
  EXPECT_LE(events.events[0].end_ns, events.events[1].begin_ns);
  EXPECT_LE(events.events[1].end_ns, events.events[2].end_ns);
  const Json json = Written({events});
  ExpectNested(json);
  EXPECT_EQ(OfPhase(json, "X")[0].at("name"), "step") << "the enclosing span comes first";
  EXPECT_EQ(OfPhase(json, "X")[0].at("args").at("step"), 7);
  { TraceSpan nothing(nullptr, "nothing"); }
}

TEST(Trace, KeepsTheLatestAndCountsTheOthers) {
  Trace trace(4);
  for (int i = 0; i < 10; ++i) trace.Add("a", 0, i, i + 1);
  trace.AddDropped(5);
  const RankEvents events = trace.Events();
  std::vector<std::int64_t> begins;
  for (const TraceEvent& event : events.events) begins.push_back(event.begin_ns);
  EXPECT_THAT(begins, ElementsAre(6, 7, 8, 9));
  EXPECT_EQ(events.dropped, 6 + 5);
  EXPECT_EQ(trace.size(), 4);
  EXPECT_EQ(Written({events}).at("otherData").at("events_dropped_rank_0"), "11");
}

TEST(Trace, CountsAreKeptLikeEvents) {
  Trace trace(2);
  for (int i = 0; i < 5; ++i) trace.Count("loss", i, 0.5 * i);
  trace.Count("loss", 5, std::nan(""));
  trace.Count("loss", 6, INFINITY);
  const RankEvents events = trace.Events();
  ASSERT_EQ(events.counts.size(), 2u);
  EXPECT_EQ(events.counts[0].value, 1.5);
  EXPECT_EQ(events.counts[1].value, 2);
  EXPECT_EQ(events.names[events.counts[1].name], "loss");
  EXPECT_EQ(events.dropped, 3);
}

TEST(Trace, ThreadsMayRecordAtOnce) {
  Trace trace;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&trace, thread] {
      const int track = trace.AddTrack("thread " + std::to_string(thread));
      for (int i = 0; i < 1000; ++i) TraceSpan span(&trace, "work", {}, track);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(trace.size(), 4000);
  EXPECT_EQ(trace.Events().tracks.size(), 5u);
  ExpectNested(Written({trace.Events()}));
}

TEST(TraceLanes, SpansThatOverlapGoOnTracksOfTheirOwn) {
  Trace trace;
  TraceLanes lanes(&trace, "dp");
  lanes.Add("a", 0, 10, {});
  lanes.Add("b", 5, 15, {});
  lanes.Add("a", 10, 20, {});
  lanes.Add("b", 14, 16, {});
  const RankEvents events = trace.Events();
  EXPECT_THAT(events.tracks, ElementsAre("main", "dp", "dp 2", "dp 3"));
  std::vector<int> tracks;
  for (const TraceEvent& event : events.events) tracks.push_back(event.track);
  EXPECT_THAT(tracks, ElementsAre(1, 2, 1, 3));
  ExpectNested(Written({events}));
}

TEST(ChromeTrace, NamesRanksAndTracksAndStartsAtZero) {
  const Json json =
      Written({Rank(0, {{5'000'000, 5'001'500, 0, 0}}), Rank(3, {{5'000'250, 5'000'750, 1, 1}})},
              {{"program", "x \"y\"\n\xff"}});
  EXPECT_EQ(json.at("displayTimeUnit"), "ms");
  EXPECT_EQ(json.at("otherData").at("program"), "x \"y\"\n\xef\xbf\xbd") << "bad UTF-8 is replaced";
  const std::vector<Json> spans = OfPhase(json, "X");
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].at("ts"), 0);
  EXPECT_EQ(spans[0].at("dur"), 1.5);
  EXPECT_EQ(spans[1].at("ts"), 0.25);
  EXPECT_EQ(spans[1].at("pid"), 3);
  EXPECT_EQ(spans[1].at("tid"), 1);
  std::set<std::string> names;
  for (const Json& meta : OfPhase(json, "M")) {
    if (meta.at("name") == "process_name") names.insert(meta.at("args").at("name"));
  }
  EXPECT_THAT(names, ElementsAre("rank 0 (h)", "rank 3 (h)"));
}

TEST(ChromeTrace, TracksOfAnAxisLieTogetherBelowMain) {
  RankEvents rank = Rank(0, {{0, 1, 0, 0}});
  rank.tracks = {"main", "tp", "dp", "tp 2"};
  std::map<int, std::string> names, shown;
  const Json json = Written({rank});
  for (const Json& meta : OfPhase(json, "M")) {
    if (meta.at("name") == "thread_name") names[meta.at("tid")] = meta.at("args").at("name");
  }
  for (const Json& meta : OfPhase(json, "M")) {
    if (meta.at("name") == "thread_sort_index")
      shown[meta.at("args").at("sort_index")] = names.at(meta.at("tid"));
  }
  EXPECT_THAT(
      shown, ElementsAre(std::pair(0, "main"), std::pair(1, "dp"), std::pair(2, "tp"), std::pair(3, "tp 2")));
}

// Rank 1's clock is a second behind at its reading 10 s and 1.1 s behind at 20 s.
TEST(ChromeTrace, ClocksAreCorrectedLinearly) {
  RankEvents rank = Rank(1, {{15'000'000'000, 16'000'000'000, 0, 0}});
  rank.moments_seconds[0] = 10;
  rank.moments_seconds[1] = 20;
  rank.offsets_seconds[0] = 1;
  rank.offsets_seconds[1] = 1.1;
  EXPECT_EQ(OnTraceClock(rank, 15'000'000'000), 16'050'000'000);
  EXPECT_EQ(OnTraceClock(rank, 16'000'000'000), 17'060'000'000);
  rank.moments_seconds[1] = 10;
  EXPECT_EQ(OnTraceClock(rank, 15'000'000'000), 16'000'000'000) << "one measurement holds always";
}

// Whatever the offsets do, spans of a track stay nested: end and begin are mapped by one rising function.
TEST(ChromeTrace, CorrectionKeepsNesting) {
  RankEvents rank = Rank(0, {});
  for (std::int64_t i = 0; i < 2000; ++i) {
    const std::int64_t begin = 1'000'000'000'000 + 1009 * i;
    rank.events.push_back({begin, begin + 1009, 0, 0});
    rank.events.push_back({begin + 3, begin + 500, 1, 0});
    rank.events.push_back({begin + 500, begin + 1009, 1, 0});
  }
  rank.moments_seconds[0] = 1000;
  rank.moments_seconds[1] = 1000.002;
  rank.offsets_seconds[0] = 0.000123456789;
  rank.offsets_seconds[1] = 0.000123654321;
  const Json json = Written({rank});
  ExpectNested(json);
  EXPECT_EQ(OfPhase(json, "X").size(), 6000u);
}

// On a busy machine, the measurements of a short trace differ by more than the trace lasts: time must not run
// backwards.
TEST(ChromeTrace, ErrorsOfMeasurementAreNoDrift) {
  for (const double sign : {-1.0, 1.0}) {
    RankEvents rank = Rank(0, {{1'001'000'000, 1'002'000'000, 0, 0}, {1'001'000'000, 1'001'500'000, 1, 0}});
    rank.moments_seconds[0] = 1;
    rank.moments_seconds[1] = 1.004;
    rank.offsets_seconds[1] = 0.25 * sign;
    EXPECT_EQ(OnTraceClock(rank, 1'001'000'000), 1'001'000'000 + 125'000'000 * sign) << "their mean holds";
    const Json json = Written({rank});
    ExpectNested(json);
    EXPECT_EQ(OfPhase(json, "X").at(0).at("dur"), 1000);
  }
}

// Rank 2 comes last to link 9, which ranks 0 and 1 wait for; rank 3 left before (a broadcast's root may).
TEST(ChromeTrace, ArrowsLeadFromTheLastToThoseThatWaited) {
  const auto part = [](std::int64_t begin, std::int64_t end, std::uint64_t link) {
    return TraceEvent{begin, end, 0, 1, {.link = link}};
  };
  const Json json =
      Written({Rank(0, {part(0, 9000, 9), part(20000, 21000, 8)}), Rank(1, {part(1000, 9500, 9)}),
               Rank(2, {part(8000, 9700, 9)}), Rank(3, {part(0, 7000, 9)})});
  std::map<int, Json> starts, ends;
  for (const Json& start : OfPhase(json, "s")) starts[start.at("id")] = start;
  for (const Json& end : OfPhase(json, "f")) ends[end.at("id")] = end;
  ASSERT_EQ(starts.size(), 2u);
  ASSERT_EQ(ends.size(), 2u);
  std::set<int> waited;
  for (const auto& [id, start] : starts) {
    const Json& end = ends.at(id);
    EXPECT_EQ(start.at("pid"), 2);
    EXPECT_EQ(start.at("ts"), 8.0);
    EXPECT_EQ(start.at("cat"), end.at("cat"));
    EXPECT_EQ(start.at("name"), end.at("name"));
    EXPECT_EQ(end.at("bp"), "e");
    EXPECT_GE(end.at("ts"), start.at("ts"));
    waited.insert(end.at("pid").get<int>());
  }
  EXPECT_THAT(waited, ElementsAre(0, 1));
}

// In flight for 1000, 2000, 3000 ns: nobody waited for the first, the program stood still in the last 700 ns
// of the second and in all of the third; nothing is known of the fourth.
TEST(ChromeTrace, ThePartInWhichTheProgramStoodStillIsASpanInside) {
  const auto call = [](std::int64_t begin, std::int64_t end, std::int64_t waited) {
    return TraceEvent{begin, end, 0, 1, {.sequence = 1, .waited_ns = waited}};
  };
  RankEvents rank = Rank(
      0, {call(0, 1000, 0), call(1000, 3000, 700), call(3000, 6000, 3000), {6000, 7000, 1, 1, {.step = 4}}});
  const Json json = Written({rank});
  ExpectNested(json);
  std::vector<Json> spans = OfPhase(json, "X");
  ASSERT_EQ(spans.size(), 6u);
  EXPECT_EQ(spans[0].at("args").at("waited_ms"), 0);
  EXPECT_EQ(spans[1].at("args").at("waited_ms"), 0.0007);
  EXPECT_EQ(spans[2].at("name"), "waiting");
  EXPECT_EQ(spans[2].at("ts"), 2.3);
  EXPECT_EQ(spans[2].at("dur"), 0.7);
  EXPECT_TRUE(spans[2].at("args").empty());
  EXPECT_EQ(spans[3].at("name"), "a") << "the enclosing span comes first";
  EXPECT_EQ(spans[3].at("args").at("waited_ms"), 0.003);
  EXPECT_EQ(spans[4].at("name"), "waiting");
  EXPECT_EQ(spans[4].at("ts"), spans[3].at("ts"));
  EXPECT_EQ(spans[4].at("dur"), spans[3].at("dur"));
  EXPECT_FALSE(spans[5].at("args").contains("waited_ms"));
  // On a clock that is corrected it stays inside, up to the end; and it is never longer than the whole.
  rank.events = {call(1'000'000'000'000, 1'000'000'001'009, 500),
                 call(1'000'000'001'009, 1'000'000'002'000, 5000)};
  rank.moments_seconds[0] = 1000;
  rank.moments_seconds[1] = 1000.002;
  rank.offsets_seconds[0] = 0.000123456789;
  rank.offsets_seconds[1] = 0.000123654321;
  const Json corrected = Written({rank});
  ExpectNested(corrected);
  spans = OfPhase(corrected, "X");
  ASSERT_EQ(spans.size(), 4u);
  EXPECT_EQ(spans[3].at("ts"), spans[2].at("ts"));
}

// On the clock of the trace, which begins with the earliest of both kinds.
TEST(ChromeTrace, CountsAreCurvesOfARank) {
  RankEvents rank = Rank(3, {{2000, 3000, 0, 0}});
  rank.counts = {{.at_ns = 1000, .name = 1, .value = 0.1}, {.at_ns = 2500, .name = 1, .value = -1e300}};
  rank.moments_seconds[1] = 1;
  const Json trace = Written({rank});
  const std::vector<Json> counts = OfPhase(trace, "C");
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[0], Json::parse(R"({"ph":"C","name":"b","pid":3,"ts":0.0,"args":{"value":0.1}})"));
  EXPECT_EQ(counts[1].at("ts"), 1.5);
  EXPECT_EQ(counts[1].at("args").at("value"), -1e300);
  EXPECT_EQ(OfPhase(trace, "X")[0].at("ts"), 1);
}

TEST(ChromeTrace, UnitsAreNamed) {
  RankEvents rank = Rank(0, {{1, 2, 0, 0, {.unit = 1}}, {3, 4, 0, 0, {.bytes = 8}}});
  rank.units = {"root", "layers.0"};
  const std::vector<Json> spans = OfPhase(Written({rank}), "X");
  EXPECT_EQ(spans[0].at("args"), Json({{"unit", "layers.0"}}));
  EXPECT_EQ(spans[1].at("args"), Json({{"bytes", 8}}));
}

TEST(EventBytes, ComeBackAsTheyWent) {
  RankEvents rank =
      Rank(2, {{1, 2, 1, 1, {.step = 3, .bytes = 4, .sequence = 5, .waited_ns = 1, .link = 6}}});
  rank.offsets_seconds[1] = 0.5;
  rank.dropped = 8;
  rank.units = {"root", "layers.0"};
  rank.events[0].arguments.unit = 1;
  rank.counts = {{.at_ns = 9, .name = 0, .value = 0.25}};
  const std::string bytes = ToBytes(rank);
  const RankEvents back = *FromBytes(bytes);
  EXPECT_EQ(ToBytes(back), bytes);
  EXPECT_EQ(back.names, rank.names);
  EXPECT_EQ(back.events[0].arguments.link, 6u);
  EXPECT_EQ(back.events[0].arguments.waited_ns, 1);
  EXPECT_EQ(back.events[0].arguments.unit, 1);
  EXPECT_EQ(back.units, rank.units);
  EXPECT_EQ(back.counts[0].value, 0.25);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(FromBytes(bytes.substr(0, length)).status().code(), absl::StatusCode::kDataLoss) << length;
  }
  rank.counts[0].name = 2;
  EXPECT_FALSE(FromBytes(ToBytes(rank)).ok()) << "a curve's name that is not there";
  rank.counts[0].name = 0;
  rank.events[0].arguments.unit = 2;
  EXPECT_FALSE(FromBytes(ToBytes(rank)).ok()) << "a unit that is not there";
  rank.events[0].arguments.unit = 1;
  rank.events[0].name = 2;
  EXPECT_FALSE(FromBytes(ToBytes(rank)).ok()) << "a name that is not there";
}

}  // namespace
}  // namespace plait::data
