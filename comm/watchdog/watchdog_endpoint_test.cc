// Both roles of a watchdog, each with a socket in place of the other one.
#include "comm/watchdog/watchdog_endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <source_location>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/host_name.h"
#include "comm/byte_stream.h"
#include "comm/watchdog/watchdog.h"

namespace plait::comm {
namespace {

constexpr int kPid = 4711;

std::pair<Link, Link> Connected() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) _exit(99);
  return {Link(ends[0]), Link(ends[1])};
}

// Of a rank that is blocked in its first collective.
void Wait(Operation operation, FlightRecorder& recorder) {
  recorder.AddGroup(7, "tp", {0, 1});
  recorder.Enter(7, {.operation = operation}, std::source_location::current(), CallState::kWaiting);
}

[[noreturn]] void StepForever(WatchdogEndpoint& endpoint) {
  for (;;) {
    endpoint.Step();
    usleep(10'000);
  }
}

[[noreturn]] void LoseServer() {
  FlightRecorder recorder, recorder_of_server;
  Wait(Operation::kBarrier, recorder);
  Wait(Operation::kAllReduce, recorder_of_server);
  auto [server, link] = Connected();
  Meeting meeting = {.peers = {}, .deputy = 1};
  meeting.peers.push_back({"node7", kPid, std::move(link)});
  Signals signals;
  const auto client = MakeWatchdogClient(1, std::move(meeting), recorder, signals);
  server.Send(FrameKind::kPosition, Encode(TakePosition(recorder_of_server)));
  client->Step();
  server.Close();
  StepForever(*client);
}

TEST(WatchdogClient, NamesItsOwnHostAndProcess) {
  const std::string line =
      absl::StrCat("^rank 1 \\(", base::HostName(), ", pid [1-9][0-9]*\\) is mismatched: ");
  EXPECT_EXIT(LoseServer(), testing::ExitedWithCode(kJobFailedExitCode), testing::ContainsRegex(line));
}

std::vector<int> MembersIn(Link& server) {
  Position newest;
  for (const Frame& frame : server.Receive()) {
    if (frame.kind == FrameKind::kPosition) newest = *DecodePosition(frame.payload);
  }
  return newest.groups.at(7).members;
}

// All ranks' members of all groups four times a second would be more than rank 0 can read.
TEST(WatchdogClient, SendsMembersOfAGroupOnceAndWhenAsked) {
  FlightRecorder recorder;
  Wait(Operation::kBarrier, recorder);
  auto [server, link] = Connected();
  Meeting meeting = {.peers = {}, .deputy = 2};
  meeting.peers.push_back({"node7", kPid, std::move(link)});
  Signals signals;
  const auto client = MakeWatchdogClient(1, std::move(meeting), recorder, signals);
  const std::vector<int> members = {0, 1};
  client->Step();
  EXPECT_EQ(MembersIn(server), members);
  usleep(300'000);
  client->Step();
  EXPECT_EQ(MembersIn(server), std::vector<int>());
  server.Send(FrameKind::kQuery);
  client->Step();
  EXPECT_EQ(MembersIn(server), members);
}

// A job of two ranks, of which rank 1 gets `number` and ends. Rank 0 gets SIGTERM, too, after `seconds`.
[[noreturn]] void EndRank1(int number, std::optional<double> seconds) {
  auto [client, link] = Connected();
  Meeting meeting;
  meeting.peers.push_back({"node7", getpid(), Link()});
  meeting.peers.push_back({"node8", kPid, std::move(link)});
  FlightRecorder recorder;
  Signals signals;
  const auto server = MakeWatchdogServer(std::move(meeting), recorder, signals);
  ByteWriter payload;
  payload.Write(number);
  client.Send(FrameKind::kTerminated, payload.Take());
  server->Step();
  usleep(static_cast<useconds_t>(1e6 * seconds.value_or(0.5)));
  if (seconds) server->OnTermination(SIGTERM);
  client.Close();
  alarm(5);
  StepForever(*server);
}

TEST(WatchdogServer, NamesARankThatGotASignalAlone) {
  EXPECT_EXIT(EndRank1(SIGTERM, std::nullopt), testing::ExitedWithCode(128 + SIGTERM),
              "^rank 1 \\(node8, pid 4711\\) was ended by signal 15 \\(Terminated\\)\n$");
  EXPECT_EXIT(EndRank1(SIGINT, std::nullopt), testing::ExitedWithCode(128 + SIGINT),
              "^rank 1 \\(node8, pid 4711\\) was ended by signal 2 \\(Interrupt\\)\n$");
  // The launcher ends the others.
  EXPECT_EXIT(EndRank1(SIGTERM, 0.6), testing::ExitedWithCode(128 + SIGTERM),
              "^rank 1 \\(node8, pid 4711\\) ");
}

TEST(WatchdogServer, NamesNobodyWhereTheWholeJobGetsASignal) {
  EXPECT_EXIT(EndRank1(SIGTERM, 0.0), testing::ExitedWithCode(128 + SIGTERM), "^$");
}

[[noreturn]] void EndRank0(int signal) {
  auto [client, link] = Connected();
  Meeting meeting;
  meeting.peers.push_back({"node7", kPid, Link()});
  meeting.peers.push_back({"node8", 1, std::move(link)});
  FlightRecorder recorder;
  Signals signals;
  const auto server = MakeWatchdogServer(std::move(meeting), recorder, signals);
  server->OnTermination(signal);
  StepForever(*server);
}

TEST(WatchdogServer, NamesItsOwnRank) {
  EXPECT_EXIT(EndRank0(SIGTERM), testing::ExitedWithCode(128 + SIGTERM),
              "^rank 0 \\(node7, pid 4711\\) was ended by signal 15 \\(Terminated\\)\n$");
  EXPECT_EXIT(EndRank0(SIGHUP), testing::ExitedWithCode(128 + SIGHUP),
              "^rank 0 \\(node7, pid 4711\\) was ended by signal 1 \\(Hangup\\)\n$");
}

}  // namespace
}  // namespace plait::comm
