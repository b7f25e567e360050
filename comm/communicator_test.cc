// What Communicator adds to all transports: recording, statistics, Agree.
#include "comm/communicator.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "comm/flight_recorder.h"
#include "comm/group.h"
#include "comm/self_backend.h"
#include "comm/testing/world.h"

namespace plait::comm {
namespace {

using testing::World;

const OperationStats& StatsOf(const Communicator& comm, Operation operation) {
  return comm.stats().at(comm.name())[static_cast<int>(operation)];
}

// Bytes of one call on a new axis, so that nothing else counts.
template <typename CallIt>
OperationStats StatsOfCall(const char* axis, Operation operation, CallIt call) {
  const Communicator comm = World().Split(0, World().rank(), axis);
  call(comm);
  return StatsOf(comm, operation);
}

TEST(Stats, CountTheBytesOfTheOptimalAlgorithm) {
  const std::int64_t n = World().size();
  std::vector<float> values(24 * n), part(24);
  const Buffer all = BufferOf(absl::MakeSpan(values)), one = BufferOf(absl::MakeSpan(part));
  const std::int64_t bytes = 96 * n;
  OperationStats s =
      StatsOfCall("a", Operation::kAllReduce, [&](const Communicator& c) { c.AllReduce(all); });
  EXPECT_EQ(s.calls, 1);
  EXPECT_EQ(s.payload_bytes, bytes);
  EXPECT_EQ(s.wire_bytes, 2 * bytes * (n - 1) / n);
  s = StatsOfCall("b", Operation::kReduceScatter, [&](const Communicator& c) { c.ReduceScatter(all, one); });
  EXPECT_EQ(s.wire_bytes, bytes * (n - 1) / n);
  s = StatsOfCall("c", Operation::kAllGather, [&](const Communicator& c) { c.AllGather(one, all); });
  EXPECT_EQ(s.wire_bytes, 96 * (n - 1));
  std::vector<float> other(24 * n);
  s = StatsOfCall("d", Operation::kAllToAll,
                  [&](const Communicator& c) { c.AllToAll(all, BufferOf(absl::MakeSpan(other))); });
  EXPECT_EQ(s.wire_bytes, bytes * (n - 1) / n);
}

TEST(Stats, ExposedTimeIsPartOfTheTimeInFlight) {
  const Communicator comm = World().Split(0, World().rank(), "overlap");
  std::vector<float> values(1000);
  Work work = comm.AllReduceAsync(BufferOf(absl::MakeSpan(values)));
  work.Wait();
  const OperationStats& s = StatsOf(comm, Operation::kAllReduce);
  EXPECT_GT(s.in_flight_seconds, 0);
  EXPECT_LE(s.exposed_seconds, s.in_flight_seconds);
  EXPECT_NE(ExportStats(comm.stats()).find("overlap"), std::string::npos);
}

TEST(FlightRecorder, KnowsCallsSitesAndPhases) {
  const Communicator comm = World().Split(0, World().rank(), "recorded");
  std::vector<double> values(5);
  int line = 0;
  {
    const PhaseScope phase(comm, "forward");
    comm.AllReduce(BufferOf(absl::MakeSpan(values)), ReduceOp::kMax);
    line = __LINE__ - 1;
  }
  const CallRecord last = comm.recorder().Calls().back();
  EXPECT_EQ(last.file, "communicator_test.cc");
  EXPECT_EQ(last.line, line);
  EXPECT_EQ(last.phase, "forward");
  EXPECT_EQ(last.state, CallState::kComplete);
  EXPECT_EQ(DescribeCall(last, "recorded"), "#1 all_reduce[recorded] f64[5] max");
  EXPECT_NE(comm.recorder().Phase(), "forward");
  EXPECT_NE(
      DescribeCalls(comm.recorder()).find("#1 all_reduce[recorded] f64[5] max at communicator_test.cc:"),
      std::string::npos);
}

TEST(FlightRecorder, ForgetsTheOldestFirst) {
  FlightRecorder recorder(/*capacity=*/4);
  recorder.AddGroup(1, "x", {0});
  std::vector<std::int64_t> ids;
  for (int i = 0; i < 6; ++i) {
    ids.push_back(
        recorder.Enter(1, {.operation = Operation::kBarrier}, CallSite::current(), CallState::kInFlight));
  }
  recorder.Complete(ids[0]);  // long overwritten: nothing happens
  const auto calls = recorder.Calls();
  ASSERT_EQ(calls.size(), 4);
  EXPECT_EQ(calls.front().sequence, 3);
  for (const CallRecord& call : calls) EXPECT_EQ(call.state, CallState::kInFlight);
  EXPECT_EQ(recorder.WaitingSeconds(), 0);
  recorder.BeginWait(ids[5]);
  EXPECT_GT(recorder.WaitingSeconds(), 0);
}

TEST(FlightRecorder, AWaitForAnOverwrittenCallCounts) {
  FlightRecorder recorder(/*capacity=*/4);
  recorder.AddGroup(1, "x", {0});
  const auto enter = [&] {
    return recorder.Enter(1, {.operation = Operation::kBarrier}, CallSite::current(), CallState::kInFlight);
  };
  const std::int64_t first = enter();
  for (int i = 0; i < 6; ++i) recorder.Complete(enter());
  EXPECT_EQ(recorder.Calls().size(), 4);
  recorder.BeginWait(first);
  EXPECT_GT(recorder.WaitingSeconds(), 0);
  const auto calls = recorder.Calls();
  ASSERT_EQ(calls.size(), 5);
  EXPECT_EQ(calls.front().id, first);
  EXPECT_EQ(calls.front().sequence, 1);
  EXPECT_EQ(calls.front().state, CallState::kWaiting);
  recorder.Complete(first);
  EXPECT_EQ(recorder.WaitingSeconds(), 0);
  EXPECT_EQ(recorder.Calls().size(), 4);
}

TEST(FlightRecorder, KnowsWhatTheProgramStoodStillFor) {
  FlightRecorder recorder;
  recorder.AddGroup(1, "x", {0});
  const auto enter = [&](CallState state) {
    return recorder.Enter(1, {.operation = Operation::kBarrier}, CallSite::current(), state);
  };
  recorder.Complete(enter(CallState::kInFlight));  // a Test found it complete
  const std::int64_t waited_for = enter(CallState::kInFlight);
  recorder.BeginWait(waited_for);
  recorder.Complete(waited_for);
  recorder.Complete(enter(CallState::kWaiting));
  const auto calls = recorder.Calls();
  ASSERT_EQ(calls.size(), 3);
  EXPECT_FALSE(calls[0].waited);
  EXPECT_EQ(ExposedSeconds(calls[0]), 0);
  EXPECT_TRUE(calls[1].waited);
  EXPECT_EQ(ExposedSeconds(calls[1]), calls[1].completed_seconds - calls[1].waiting_since_seconds);
  EXPECT_TRUE(calls[2].waited);
  EXPECT_EQ(ExposedSeconds(calls[2]), calls[2].completed_seconds - calls[2].entered_seconds);
}

// Between GPUs; it sees the state of the call that it starts.
class DeviceBackend final : public Backend {
 public:
  explicit DeviceBackend(std::shared_ptr<Journal> journal) : journal_(std::move(journal)) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  Device device() const override { return Device::kCuda; }
  std::vector<int> members() const override { return {0}; }
  void Run(const Request& request) override { self_->Run(request); }
  std::unique_ptr<PendingWork> Start(const Request& request) override {
    state = journal_->recorder.Calls().back().state;
    return self_->Start(request);
  }
  std::unique_ptr<Backend> Split(int, int) override { return nullptr; }

  CallState state = CallState::kComplete;

 private:
  std::shared_ptr<Journal> journal_;
  std::unique_ptr<Backend> self_ = MakeSelfBackend();
};

TEST(FlightRecorder, KnowsThatAStartBetweenGpusMayBlock) {
  const auto journal = std::make_shared<Journal>();
  auto backend = std::make_unique<DeviceBackend>(journal);
  const CallState& in_start = backend->state;
  const Communicator comm(MakeWorldGroup(std::move(backend), "devices", journal));
  Work work = comm.BarrierAsync();
  EXPECT_EQ(in_start, CallState::kWaiting);
  const CallRecord call = comm.recorder().Calls().back();
  EXPECT_EQ(call.state, CallState::kInFlight);
  EXPECT_FALSE(call.waited);
  EXPECT_EQ(comm.recorder().WaitingSeconds(), 0);
  work.Wait();
  EXPECT_EQ(comm.recorder().Calls().back().state, CallState::kComplete);
}

TEST(Agree, AllOkIsOk) { EXPECT_TRUE(World().Agree(absl::OkStatus()).ok()); }

TEST(Agree, GivesTheWorstCodeAndTheLowestRanksMessageToAll) {
  const int rank = World().rank(), size = World().size();
  absl::Status mine = absl::OkStatus();
  if (rank == size / 2) mine = absl::InvalidArgumentError("rank " + std::to_string(rank) + ": no such file");
  if (rank == size - 1 && rank > size / 2) mine = absl::DataLossError("truncated");
  const absl::Status all = World().Agree(mine);
  EXPECT_EQ(all.message(), "rank " + std::to_string(size / 2) + ": no such file");
  EXPECT_EQ(all.code(),
            size - 1 > size / 2 ? absl::StatusCode::kDataLoss : absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace plait::comm
