#include "tools/rank_history/rank_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "comm/launch/clock_offset.h"
#include "comm/testing/world.h"
#include "data/hdf5/atomic_file.h"

namespace plait::rank_history {
namespace {

using comm::testing::World;
using Json = nlohmann::json;

struct Written {
  std::map<int, std::map<std::string, int>> spans;  // by rank and name
  std::map<std::int64_t, std::map<int, std::pair<double, double>>>
      collectives;  // begin, end by sequence, rank
  std::map<int, Json> starts, ends;
};

Written Read(const Json& trace, const std::string& collective) {
  Written found;
  for (const Json& event : trace.at("traceEvents")) {
    const std::string phase = event.at("ph");
    if (phase == "s") found.starts[event.at("id")] = event;
    if (phase == "f") found.ends[event.at("id")] = event;
    if (phase != "X") continue;
    const int rank = event.at("pid");
    ++found.spans[rank][event.at("name")];
    if (event.at("name") != collective) continue;
    EXPECT_EQ(event.at("args").at("bytes"), 8000);
    const double begin = event.at("ts");
    found.collectives[event.at("args").at("sequence")][rank] = {begin, begin + event.at("dur").get<double>()};
  }
  return found;
}

// Ranks of one machine share a clock, so a measured offset is all measurement error, which grows with the load.
RankTraceOptions OnOneClock(const std::string& path) {
  return {.path = path, .measure_offsets = [](const comm::Communicator& group) {
            return std::vector<comm::ClockOffset>(group.size());
          }};
}

TEST(RankTrace, HoldsSpansAndCollectivesOfAllRanksOnOneClock) {
  constexpr int kSteps = 30;
  const comm::Communicator dp = World().Split(0, World().rank(), "dp");
  const std::string path = testing::TempDir() + "/rank_trace_" + std::to_string(World().size()) + ".json";
  auto trace = RankTrace::Create(World(), OnOneClock(path));
  std::vector<double> values(1000, 1.0);
  for (int step = 0; step < kSteps; ++step) {
    data::TraceSpan span(trace->trace(), "step", {.step = step});
    dp.AllReduce(comm::BufferOf(absl::MakeSpan(values)), comm::ReduceOp::kMax);
    if (step % 7 == 0) trace->TakeCalls();
  }
  ASSERT_TRUE(trace->Write({{"program", "test"}}).ok());
  if (World().rank() != 0) return;
  const Json json = Json::parse(*data::ReadWholeFile(path));
  EXPECT_EQ(json.at("otherData").at("program"), "test");
  EXPECT_EQ(json.at("otherData").count("events_dropped_rank_0"), 0u);
  Written found = Read(json, "all_reduce");
  for (int rank = 0; rank < World().size(); ++rank) EXPECT_EQ(found.spans[rank]["step"], kSteps) << rank;
  if (World().size() == 1) {
    EXPECT_TRUE(found.collectives.empty()) << "a group of one has no messages";
    return;
  }
  EXPECT_EQ(found.collectives.size(), std::size_t{kSteps});
  for (const auto& [sequence, by_rank] : found.collectives) {
    EXPECT_EQ(static_cast<int>(by_rank.size()), World().size()) << sequence;
  }
  EXPECT_EQ(static_cast<int>(found.starts.size()), kSteps * (World().size() - 1));
  for (const auto& [id, start] : found.starts) {
    const Json& end = found.ends.at(id);
    EXPECT_NE(start.at("pid"), end.at("pid"));
    EXPECT_LE(start.at("ts"), end.at("ts"));
  }
  EXPECT_EQ(found.starts.size(), found.ends.size());
}

// By how many microseconds some rank left a collective before the last one entered it; at most 0 if clocks are right.
double LargestLead(const std::string& path) {
  double lead = -1e300;
  for (const auto& [sequence, by_rank] :
       Read(Json::parse(*data::ReadWholeFile(path)), "all_reduce").collectives) {
    double last_begin = -1, first_end = 1e300;
    for (const auto& [rank, times] : by_rank) {
      last_begin = std::max(last_begin, times.first);
      first_end = std::min(first_end, times.second);
    }
    lead = std::max(lead, last_begin - first_end);
  }
  return lead;
}

void WriteAllReduces(const RankTraceOptions& options) {
  const comm::Communicator dp = World().Split(0, World().rank(), "dp");
  std::vector<double> values(1000, 1.0);
  auto trace = RankTrace::Create(World(), options);
  for (int step = 0; step < 50; ++step) dp.AllReduce(comm::BufferOf(absl::MakeSpan(values)));
  ASSERT_TRUE(trace->Write({}).ok());
}

// No rank can leave an all-reduce before the last one has entered. Times are whole nanoseconds.
TEST(RankTrace, NobodyLeavesBeforeTheLastHasCome) {
  if (World().size() == 1) return;
  const std::string path = testing::TempDir() + "/causal_" + std::to_string(World().size()) + ".json";
  WriteAllReduces(OnOneClock(path));
  if (World().rank() == 0) {
    EXPECT_LE(LargestLead(path), 1e-3);
  }
}

// The same with measured clocks: of two ranks, each is wrong by at most the larger of the two measurements' error
// bounds.
TEST(RankTrace, MeasuredClocksAreAsRightAsTheySay) {
  if (World().size() == 1) return;
  const std::string path = testing::TempDir() + "/measured_" + std::to_string(World().size()) + ".json";
  double uncertainty = 0;
  WriteAllReduces({.path = path, .measure_offsets = [&](const comm::Communicator& group) {
                     const std::vector<comm::ClockOffset> offsets = MeasureTraceClocks(group);
                     for (const comm::ClockOffset& offset : offsets) {
                       uncertainty = std::max(uncertainty, offset.uncertainty_seconds);
                     }
                     return offsets;
                   }});
  if (World().rank() == 0) {
    EXPECT_LE(LargestLead(path), 1e-3 + 2 * 1e6 * uncertainty);
  }
}

// A clock that is one hour fast, then two: no clock drifts like that, so the mean of both measurements is corrected.
// The ranks' clocks are the same here, so rank 1's events move by that hour and a half.
TEST(RankTrace, ClocksThatAreFastAreSetBack) {
  if (World().size() == 1) return;
  const std::string path = testing::TempDir() + "/fast_" + std::to_string(World().size()) + ".json";
  int measured = 0;
  RankTraceOptions options = OnOneClock(path);
  options.measure_offsets = [&](const comm::Communicator& group) {
    std::vector<comm::ClockOffset> offsets(group.size());
    offsets[1].seconds = 3600 * ++measured;
    return offsets;
  };
  WriteAllReduces(options);
  EXPECT_EQ(measured, 2);
  if (World().rank() != 0) return;
  for (const auto& [sequence, by_rank] :
       Read(Json::parse(*data::ReadWholeFile(path)), "all_reduce").collectives) {
    const auto &first = by_rank.at(0), &second = by_rank.at(1);
    // Both were in it at one moment at least.
    const double earliest = 1e-6 * (second.first - first.second),
                 latest = 1e-6 * (second.second - first.first);
    EXPECT_LE(earliest, -5400 + 1e-9) << sequence;
    EXPECT_GE(latest, -5400 - 1e-9) << sequence;
  }
}

// Calls in flight during TakeCalls are added by a later one, and overlapping calls get tracks of their own.
TEST(RankTrace, CallsInFlightAreTakenOnceTheyAreComplete) {
  const comm::Communicator dp = World().Split(0, World().rank(), "dp");
  const std::string path = testing::TempDir() + "/in_flight_" + std::to_string(World().size()) + ".json";
  auto trace = RankTrace::Create(World(), OnOneClock(path));
  std::vector<double> first(1000, 1.0), second(1000, 1.0), third(1000, 1.0);
  comm::Work first_work = dp.AllReduceAsync(comm::BufferOf(absl::MakeSpan(first)));
  trace->TakeCalls();
  comm::Work second_work = dp.AllReduceAsync(comm::BufferOf(absl::MakeSpan(second)));
  second_work.Wait();
  trace->TakeCalls();
  first_work.Wait();
  trace->TakeCalls();
  dp.AllReduce(comm::BufferOf(absl::MakeSpan(third)));
  ASSERT_TRUE(trace->Write({}).ok());
  if (World().rank() != 0 || World().size() == 1) return;
  const Json json = Json::parse(*data::ReadWholeFile(path));
  EXPECT_EQ(Read(json, "all_reduce").collectives.size(), 3u);
  std::vector<int> tracks;
  for (const Json& event : json.at("traceEvents")) {
    if (event.at("ph") == "X" && event.at("pid") == 0 && event.at("name") == "all_reduce") {
      tracks.push_back(event.at("tid"));
    }
  }
  EXPECT_THAT(tracks, ::testing::ElementsAre(1, 1, 2)) << "the first and the third share a track";
}

// An all-reduce that overlaps with work, then a blocking one: the rank waits once the work is done, and not before.
TEST(RankTrace, TellsForHowLongTheRankStoodStill) {
  const comm::Communicator dp = World().Split(0, World().rank(), "dp");
  const std::string path = testing::TempDir() + "/waited_" + std::to_string(World().size()) + ".json";
  auto trace = RankTrace::Create(World(), OnOneClock(path));
  std::vector<double> beside(1000, 1.0), blocking(1000, 1.0);
  // So that the others stand still in the first; should the machine be too busy for that, there is no wait to
  // be looked at.
  if (World().rank() == World().size() - 1) usleep(50000);
  comm::Work work = dp.AllReduceAsync(comm::BufferOf(absl::MakeSpan(beside)));
  {
    const data::TraceSpan span(trace->trace(), "work", {});
    usleep(1000);
  }
  work.Wait();
  dp.AllReduce(comm::BufferOf(absl::MakeSpan(blocking)));
  ASSERT_TRUE(trace->Write({}).ok());
  if (World().rank() != 0 || World().size() == 1) return;
  const Json json = Json::parse(*data::ReadWholeFile(path));
  std::map<int, std::map<std::string, std::vector<Json>>> spans;
  for (const Json& event : json.at("traceEvents")) {
    if (event.at("ph") == "X") spans[event.at("pid")][event.at("name")].push_back(event);
  }
  ASSERT_EQ(spans.size(), static_cast<std::size_t>(World().size()));
  // In microseconds, written in whole nanoseconds: differences of two may be off by two and a half.
  constexpr double kRounding = 2.5e-3;
  for (auto& [rank, by_name] : spans) {
    const std::vector<Json>&calls = by_name["all_reduce"], &waits = by_name["waiting"];
    ASSERT_EQ(calls.size(), 2u);
    ASSERT_EQ(by_name["work"].size(), 1u);
    // Nobody stands still in the first if it was complete when the work was.
    ASSERT_GE(waits.size(), 1u);
    ASSERT_LE(waits.size(), 2u);
    const auto begin = [](const Json& event) { return event.at("ts").get<double>(); };
    const auto end = [](const Json& event) {
      return event.at("ts").get<double>() + event.at("dur").get<double>();
    };
    const auto waited = [](const Json& event) {
      return 1e3 * event.at("args").at("waited_ms").get<double>();
    };
    EXPECT_GE(begin(waits.front()), end(by_name["work"][0]) - kRounding);
    const std::size_t skipped = 2 - waits.size();
    for (std::size_t i = skipped; i < 2; ++i) {
      const Json& wait = waits[i - skipped];
      EXPECT_EQ(wait.at("tid"), calls[i].at("tid"));
      EXPECT_NEAR(end(wait), end(calls[i]), kRounding);
      EXPECT_NEAR(waited(calls[i]), wait.at("dur").get<double>(), kRounding);
    }
    EXPECT_NEAR(begin(waits.back()), begin(calls[1]), kRounding);
  }
}

// Each message has an arrow of its own between its two spans, also where tags come again. Rank r sends r + 1 numbers
// more in each step.
TEST(RankTrace, ArrowsJoinSendsWithTheirReceives) {
  if (World().size() == 1) return;
  constexpr int kSteps = 3;
  const int rank = World().rank(), size = World().size(), next = (rank + 1) % size;
  const int before = (rank + size - 1) % size;
  const comm::Communicator pp = World().Split(0, rank, "pp");
  const std::string path = testing::TempDir() + "/messages_" + std::to_string(size) + ".json";
  auto trace = RankTrace::Create(World(), OnOneClock(path));
  for (int step = 0; step < kSteps; ++step) {
    std::vector<double> mine((rank + 1) * (step + 1)), theirs((before + 1) * (step + 1));
    comm::Work work = pp.ReceiveAsync(comm::BufferOf(absl::MakeSpan(theirs)), before, /*tag=*/5);
    pp.Send(comm::ConstBufferOf(absl::MakeConstSpan(mine)), next, /*tag=*/5);
    work.Wait();
    trace->TakeCalls();
  }
  ASSERT_TRUE(trace->Write({}).ok());
  if (rank != 0) return;
  const Json json = Json::parse(*data::ReadWholeFile(path));
  const auto bytes_at = [&json](const Json& arrow) {
    for (const Json& span : json.at("traceEvents")) {
      const double from = span.value("ts", 0.0), at = arrow.at("ts");
      if (span.at("ph") != "X" || span.at("pid") != arrow.at("pid") || span.at("tid") != arrow.at("tid"))
        continue;
      // Times are nanoseconds, as decimals: their sum is rounded.
      const double to = from + span.at("dur").get<double>() + 1e-4;
      if (span.at("name") != "waiting" && from <= at && at <= to) {
        return span.at("args").at("bytes").get<std::int64_t>();
      }
    }
    return std::int64_t{-1};
  };
  std::map<int, std::vector<Json>> arrows;
  for (const Json& event : json.at("traceEvents")) {
    if (event.at("ph") == "s" || event.at("ph") == "f") arrows[event.at("id")].push_back(event);
  }
  EXPECT_EQ(static_cast<int>(arrows.size()), kSteps * size);
  for (const auto& [id, ends] : arrows) {
    ASSERT_EQ(ends.size(), 2u);
    EXPECT_EQ(bytes_at(ends[0]), bytes_at(ends[1])) << "of different messages";
    EXPECT_EQ(ends[0].at("ph"), "s");
    EXPECT_EQ((ends[0].at("pid").get<int>() + 1) % size, ends[1].at("pid").get<int>());
  }
}

TEST(RankTrace, CallsThatWereTakenTooLateAreCounted) {
  const comm::Communicator dp = World().Split(0, World().rank(), "dp");
  const std::string path = testing::TempDir() + "/late_" + std::to_string(World().size()) + ".json";
  auto trace = RankTrace::Create(World(), {.path = path});
  std::vector<double> values(1);
  for (int call = 0; call < 1000; ++call) dp.AllReduce(comm::BufferOf(absl::MakeSpan(values)));
  ASSERT_TRUE(trace->Write({}).ok());
  if (World().rank() != 0) return;
  const Json json = Json::parse(*data::ReadWholeFile(path));
  EXPECT_GE(std::stoi(json.at("otherData").at("events_dropped_rank_0").get<std::string>()), 1000 - 512);
  EXPECT_GE(trace->dropped(), World().size() * (1000 - 512));
}

// By the tag; a message's tag means something else.
TEST(RankTrace, CollectivesNameTheUnitThatTheyAreOf) {
  if (World().size() == 1) return;
  const int rank = World().rank(), size = World().size();
  const comm::Communicator dp = World().Split(0, rank, "dp");
  const std::string path = testing::TempDir() + "/units_" + std::to_string(size) + ".json";
  auto trace = RankTrace::Create(World(), OnOneClock(path));
  trace->SetUnits({"root", "layers.0"});
  std::vector<double> values(1000);
  for (const int tag : {0, 1, 2, comm::kNoTag}) {
    dp.AllReduceAsync(comm::BufferOf(absl::MakeSpan(values)), comm::ReduceOp::kSum, tag).Wait();
  }
  comm::Work work = dp.ReceiveAsync(comm::BufferOf(absl::MakeSpan(values)), (rank + size - 1) % size, 1);
  dp.Send(comm::ConstBufferOf(absl::MakeConstSpan(std::vector<double>(1000))), (rank + 1) % size, 1);
  work.Wait();
  ASSERT_TRUE(trace->Write({}).ok());
  if (rank != 0) return;
  std::vector<std::string> units;  // of rank 0, in the order of their sequence numbers
  const Json json = Json::parse(*data::ReadWholeFile(path));
  for (const Json& event : json.at("traceEvents")) {
    if (event.at("ph") != "X" || event.at("pid") != 0 || event.at("name") == "waiting") continue;
    units.push_back(event.at("name").get<std::string>() + " " + event.at("args").value("unit", "-"));
  }
  EXPECT_THAT(units, ::testing::UnorderedElementsAre("all_reduce root", "all_reduce layers.0", "all_reduce -",
                                                     "all_reduce -", "receive -", "send -"));
}

TEST(RankTrace, ACallThatStaysInFlightHidesNoOthers) {
  const comm::Communicator dp = World().Split(0, World().rank(), "dp");
  const std::string path = testing::TempDir() + "/in_flight_" + std::to_string(World().size()) + ".json";
  auto trace = RankTrace::Create(World(), {.path = path});
  std::vector<double> slow(1), values(2);
  comm::Work pending = dp.AllReduceAsync(comm::BufferOf(absl::MakeSpan(slow)));
  for (int call = 0; call < 400; ++call) {
    dp.AllReduce(comm::BufferOf(absl::MakeSpan(values)));
    if (call % 100 == 0) trace->TakeCalls();
  }
  pending.Wait();
  trace->TakeCalls();
  for (int call = 0; call < 300; ++call) dp.AllReduce(comm::BufferOf(absl::MakeSpan(values)));
  ASSERT_TRUE(trace->Write({}).ok());
  if (World().rank() != 0) return;
  const Json json = Json::parse(*data::ReadWholeFile(path));
  std::map<std::int64_t, int> calls;  // by bytes, of rank 0
  for (const Json& event : json.at("traceEvents")) {
    if (event.at("ph") == "X" && event.at("pid") == 0 && event.at("name") == "all_reduce") {
      ++calls[event.at("args").at("bytes").get<std::int64_t>()];
    }
  }
  EXPECT_EQ(calls[16], World().size() > 1 ? 700 : 0);
  EXPECT_EQ(calls[8], World().size() > 1 ? 1 : 0);
  EXPECT_EQ(json.at("otherData").count("events_dropped_rank_0"), 0u);
  EXPECT_EQ(trace->dropped(), 0);
}

TEST(RankTrace, ErrorsOfTheFileAreToldToAllRanks) {
  auto trace = RankTrace::Create(World(), {.path = testing::TempDir() + "/no/such/folder/trace.json"});
  EXPECT_EQ(trace->Write({}).code(), absl::StatusCode::kNotFound);
  auto none = RankTrace::Create(World(), {});
  EXPECT_EQ(none->trace(), nullptr);
  none->TakeCalls();
  EXPECT_TRUE(none->Write({}).ok());
}

}  // namespace
}  // namespace plait::rank_history
