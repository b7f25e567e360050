#include "tools/rank_history/rank_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
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

TEST(RankTrace, HoldsSpansAndCollectivesOfAllRanksOnOneClock) {
  constexpr int kSteps = 30;
  const comm::Communicator dp = World().Split(0, World().rank(), "dp");
  const std::string path = testing::TempDir() + "/rank_trace_" + std::to_string(World().size()) + ".json";
  auto trace = RankTrace::Create(World(), {.path = path});
  std::vector<double> values(1000, 1.0);
  for (int step = 0; step < kSteps; ++step) {
    data::TraceSpan span(trace->trace(), "step", {.step = step});
    if (World().rank() == World().size() - 1) usleep(300);  // so that this rank comes last
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

// No rank can leave an all-reduce before the last one has entered. After the correction that must hold up
// to the error of the clocks: the bound that each rank measured.
TEST(RankTrace, NobodyLeavesBeforeTheLastHasCome) {
  if (World().size() == 1) return;
  const comm::Communicator dp = World().Split(0, World().rank(), "dp");
  const std::string path = testing::TempDir() + "/causal_" + std::to_string(World().size()) + ".json";
  std::vector<double> values(1000, 1.0), bound(1);
  const auto now = [] { return 1e-9 * static_cast<double>(data::Trace::NowNs()); };
  bound[0] = comm::MeasureClockOffsets(World(), now)[World().rank()].uncertainty_seconds;
  World().AllReduce(comm::BufferOf(absl::MakeSpan(bound)), comm::ReduceOp::kMax);
  auto trace = RankTrace::Create(World(), {.path = path});
  for (int step = 0; step < 50; ++step) dp.AllReduce(comm::BufferOf(absl::MakeSpan(values)));
  ASSERT_TRUE(trace->Write({}).ok());
  if (World().rank() != 0) return;
  for (const auto& [sequence, by_rank] :
       Read(Json::parse(*data::ReadWholeFile(path)), "all_reduce").collectives) {
    double last_begin = -1, first_end = 1e300;
    for (const auto& [rank, times] : by_rank) {
      last_begin = std::max(last_begin, times.first);
      first_end = std::min(first_end, times.second);
    }
    // Three measurements, each wrong by at most its bound: take ten times the one seen here, in
    // microseconds.
    EXPECT_GE(first_end, last_begin - 1e7 * bound[0]) << sequence;
  }
}

// What is under way when calls are taken comes later, and overlapping calls lie on tracks of their own.
TEST(RankTrace, CallsInFlightAreTakenOnceTheyAreComplete) {
  const comm::Communicator dp = World().Split(0, World().rank(), "dp");
  const std::string path = testing::TempDir() + "/in_flight_" + std::to_string(World().size()) + ".json";
  auto trace = RankTrace::Create(World(), {.path = path});
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

// An all-reduce beside 20 ms of other work, then one that is waited for from its begin on.
TEST(RankTrace, TellsForHowLongTheRankStoodStill) {
  const comm::Communicator dp = World().Split(0, World().rank(), "dp");
  const std::string path = testing::TempDir() + "/waited_" + std::to_string(World().size()) + ".json";
  auto trace = RankTrace::Create(World(), {.path = path});
  std::vector<double> beside(1000, 1.0), blocking(1000, 1.0);
  // The last rank comes when the others have long begun to wait.
  if (World().rank() == World().size() - 1) usleep(60000);
  comm::Work work = dp.AllReduceAsync(comm::BufferOf(absl::MakeSpan(beside)));
  usleep(20000);
  work.Wait();
  dp.AllReduce(comm::BufferOf(absl::MakeSpan(blocking)));
  ASSERT_TRUE(trace->Write({}).ok());
  if (World().rank() != 0 || World().size() == 1) return;
  const Json json = Json::parse(*data::ReadWholeFile(path));
  std::map<int, std::vector<Json>> calls, waits;
  for (const Json& event : json.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    if (event.at("name") == "all_reduce") calls[event.at("pid")].push_back(event);
    if (event.at("name") == "waiting") waits[event.at("pid")].push_back(event);
  }
  ASSERT_EQ(calls.size(), static_cast<std::size_t>(World().size()));
  for (const auto& [rank, both] : calls) {
    ASSERT_EQ(both.size(), 2u);
    const auto milliseconds = [](const Json& event) { return 1e-3 * event.at("dur").get<double>(); };
    const auto waited = [](const Json& event) { return event.at("args").at("waited_ms").get<double>(); };
    // waited_ms is on the rank's own clock, the spans on the trace's: so short a trace corrects the drift by
    // a clock's error over some 20 ms, less than 1 %.
    EXPECT_LE(waited(both[0]), 1.01 * milliseconds(both[0]) - 20);
    EXPECT_NEAR(waited(both[1]), milliseconds(both[1]), 0.01 * milliseconds(both[1]));
    const Json& last = waits.at(rank).back();
    EXPECT_EQ(last.at("tid"), both[1].at("tid"));
    // Both spans on one clock, in whole nanoseconds.
    EXPECT_NEAR(last.at("ts").get<double>(), both[1].at("ts").get<double>(), 2.5e-3);
    EXPECT_NEAR(milliseconds(last), milliseconds(both[1]), 2.5e-6);
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
