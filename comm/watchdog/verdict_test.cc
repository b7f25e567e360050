#include "comm/watchdog/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plait::comm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kTp = 7;
constexpr double kNow = 1000;
constexpr double kTimeout = 10;

// A call that was entered `ago` seconds before now.
CallRecord Call(std::int64_t sequence, Operation operation, CallState state, double ago) {
  CallRecord call;
  call.id = sequence;
  call.group = kTp;
  call.sequence = sequence;
  call.operation = operation;
  call.type = DataType::kFloat32;
  call.count = 100;
  call.state = state;
  call.entered_seconds = call.waiting_since_seconds = kNow - ago;
  call.file = "train.cc";
  call.line = 5;
  call.phase = "backward";
  return call;
}

std::vector<RankReport> Reports(std::vector<std::vector<CallRecord>> calls_of_ranks) {
  std::vector<RankReport> reports;
  std::vector<int> members;
  for (std::size_t i = 0; i < calls_of_ranks.size(); ++i) members.push_back(static_cast<int>(i));
  for (auto& calls : calls_of_ranks) {
    RankReport& r = reports.emplace_back();
    r.rank = static_cast<int>(reports.size()) - 1;
    r.host = "node";
    r.pid = 100 + r.rank;
    r.received_seconds = r.position.at_seconds = kNow;
    r.position.phase = "optimizer";
    r.position.groups[kTp] = {.name = "tp", .members = members};
    for (const CallRecord& call : calls) {
      if (!IsPointToPoint(call.operation)) r.position.groups[kTp].collectives = call.sequence;
    }
    r.position.calls = std::move(calls);
  }
  return reports;
}

const auto kWaiting = CallState::kWaiting;
const auto kDone = CallState::kComplete;
const auto kReduce = Operation::kAllReduce;

TEST(Verdict, NamesTheLateRankAndWhereItWas) {
  const auto reports = Reports({{Call(8, kReduce, kDone, 20), Call(9, kReduce, kWaiting, 12)},
                                {Call(8, Operation::kBroadcast, kDone, 15)}});
  auto same = reports;
  same[1].position.calls[0].operation = kReduce;
  EXPECT_THAT(FindGuilty(same, kTimeout, kNow),
              ElementsAre("rank 1 (node, pid 101) has not entered #9 all_reduce[tp] f32[100]; last entered "
                          "#8 all_reduce[tp] f32[100], 15.0 s ago, in phase optimizer"));
}

TEST(Verdict, AccusesNobodyBeforeTheTimeout) {
  EXPECT_THAT(
      FindGuilty(Reports({{Call(9, kReduce, kWaiting, 9)}, {Call(8, kReduce, kDone, 9)}}), kTimeout, kNow),
      IsEmpty());
}

TEST(Verdict, FollowsAChainOfWaitsToItsEnd) {
  // 0 waits in the all-reduce for 1, which waits for a message of 2, which does something else.
  CallRecord receive = Call(1, Operation::kReceive, kWaiting, 11);
  receive.root = 2;
  receive.tag = 4;
  const auto lines = FindGuilty(Reports({{Call(9, kReduce, kWaiting, 12)},
                                         {Call(8, kReduce, kDone, 12), receive},
                                         {Call(9, kReduce, kDone, 12)}}),
                                kTimeout, kNow);
  EXPECT_THAT(
      lines, ElementsAre(HasSubstr("rank 2 (node, pid 102) has not sent what rank 1 awaits in #1 receive[tp] "
                                   "f32[100] from 2 tag 4")));
}

TEST(Verdict, TheMinorityIsMismatched) {
  auto reports = Reports(
      {{Call(9, kReduce, kWaiting, 12)}, {Call(9, kReduce, kWaiting, 12)}, {Call(9, kReduce, kWaiting, 12)}});
  reports[0].position.calls[0].count = 99;
  EXPECT_THAT(
      FindGuilty(reports, kTimeout, kNow),
      ElementsAre("rank 0 (node, pid 100) is mismatched: it entered #9 all_reduce[tp] f32[99] at train.cc:5 "
                  "where rank 1 entered #9 all_reduce[tp] f32[100] at train.cc:5, in phase backward"));
}

TEST(Verdict, ARankThatIsOutOfStepAccusesNobodyLater) {
  // Rank 1 has made two calls in the other order; rank 0 has not come to the second one.
  auto reports = Reports({{Call(9, kReduce, kWaiting, 12)},
                          {Call(9, kReduce, kDone, 12), Call(10, kReduce, kWaiting, 12)},
                          {Call(9, kReduce, kDone, 12), Call(10, kReduce, kWaiting, 12)}});
  reports[1].position.calls[0].count = 99;
  reports[2].position.calls[1].count = 99;
  EXPECT_THAT(FindGuilty(reports, kTimeout, kNow),
              ElementsAre(HasSubstr("rank 1 (node, pid 101) is mismatched: it entered #9")));
}

TEST(Verdict, AnErrorIsToldBesideARankThatIsOnlySilent) {
  auto reports =
      Reports({{Call(9, kReduce, kWaiting, 1)}, {Call(8, kReduce, kDone, 1)}, {Call(8, kReduce, kDone, 1)}});
  reports[1].position.failure = "UNAVAILABLE: disk";
  reports[2].state = RankState::kSilent;
  EXPECT_THAT(FindGuilty(reports, kTimeout, kNow),
              ElementsAre("rank 1 (node, pid 101): UNAVAILABLE: disk",
                          HasSubstr("rank 2 (node, pid 102) does not answer")));
  // A rank that is gone explains errors of others.
  reports[2].state = RankState::kDead;
  EXPECT_THAT(FindGuilty(reports, kTimeout, kNow), ElementsAre(HasSubstr("rank 2 (node, pid 102) is dead")));
}

TEST(Verdict, TypeReductionRootAndTagAreComparedToo) {
  for (int what = 0; what < 4; ++what) {
    auto reports = Reports({{Call(9, kReduce, kWaiting, 12)}, {Call(9, kReduce, kDone, 12)}});
    CallRecord& call = reports[1].position.calls[0];
    if (what == 0) call.type = DataType::kInt32;
    if (what == 1) call.reduce = ReduceOp::kMax;
    if (what == 2) call.root = 1;
    if (what == 3) call.tag = 1;
    EXPECT_THAT(FindGuilty(reports, kTimeout, kNow),
                ElementsAre(HasSubstr("rank 1 (node, pid 101) is mismatched")));
  }
}

TEST(Verdict, UnevenCountsOfAllToAllVAreNoMismatch) {
  auto reports =
      Reports({{Call(9, Operation::kAllToAllV, kWaiting, 12)}, {Call(9, Operation::kAllToAllV, kDone, 12)}});
  reports[1].position.calls[0].count = 7;
  for (const std::string& line : FindGuilty(reports, kTimeout, kNow))
    EXPECT_THAT(line, Not(HasSubstr("mismatched")));
}

TEST(Verdict, AMismatchExplainsACrash) {
  auto reports = Reports({{Call(9, kReduce, kWaiting, 1)}, {Call(9, Operation::kBroadcast, kWaiting, 1)}});
  reports[1].state = RankState::kDead;
  EXPECT_THAT(FindGuilty(reports, kTimeout, kNow),
              ElementsAre(HasSubstr("rank 1 (node, pid 101) is mismatched")));
}

TEST(Verdict, TellsHowARankWasLost) {
  auto reports = Reports({{}, {}, {}, {}, {Call(9, kReduce, kWaiting, 99)}});
  reports[0].state = RankState::kExited;
  reports[0].exit_code = 3;
  reports[1].state = RankState::kDead;
  reports[2].state = RankState::kCrashed;
  reports[2].exit_code = 11;
  reports[3].state = RankState::kSilent;
  EXPECT_THAT(FindGuilty(reports, kTimeout, kNow),
              ElementsAre(HasSubstr("rank 0 (node, pid 100) is dead: it called exit(3)"),
                          HasSubstr("process is gone"), HasSubstr("crashed with signal 11"),
                          HasSubstr("does not answer")));
}

TEST(Verdict, TellsInWhichCallALostRankIsMissing) {
  auto reports = Reports({{}, {Call(9, kReduce, kWaiting, 1)}, {Call(8, kReduce, kDone, 1)}});
  reports[2].state = RankState::kDead;
  EXPECT_THAT(
      FindGuilty(reports, kTimeout, kNow),
      ElementsAre("rank 2 (node, pid 102) is dead: its process is gone; last entered #8 all_reduce[tp] "
                  "f32[100], 1.0 s ago, in phase optimizer; rank 1 waits for it in #9 all_reduce[tp] "
                  "f32[100] at train.cc:5, in phase backward"));
  // Killed before its first message to rank 0; a rank that waits for another one is not shown as its waiter.
  reports[2].position = {};
  reports[1].position.calls[0].operation = Operation::kReceive;
  reports[1].position.calls[0].root = 0;
  EXPECT_THAT(
      FindGuilty(reports, kTimeout, kNow),
      ElementsAre("rank 2 (node, pid 102) is dead: its process is gone; no call had been reported yet"));
  // As seen by the deputy of rank 0, which only knows rank 0 and itself.
  reports = Reports({{}, {Call(9, kReduce, kWaiting, 1)}, {}});
  reports[0].state = RankState::kDead;
  reports.pop_back();
  EXPECT_THAT(FindGuilty(reports, kTimeout, kNow),
              ElementsAre(HasSubstr("; rank 1 waits for it in #9 all_reduce[tp] f32[100] at train.cc:5")));
}

TEST(Verdict, NamesAllWhoWaitInACircle) {
  auto receive = [](int from) {
    CallRecord call = Call(1, Operation::kReceive, kWaiting, 11);
    call.root = from;
    return call;
  };
  EXPECT_THAT(
      FindGuilty(Reports({{receive(1)}, {receive(0)}}), kTimeout, kNow),
      ElementsAre(HasSubstr("rank 0 (node, pid 100) has waited 11.0 s in #1 receive[tp] f32[100] from 1"),
                  HasSubstr("rank 1 (node, pid 101) has waited 11.0 s")));
}

TEST(Position, SurvivesTheWire) {
  const Position sent = Reports({{Call(8, kReduce, kDone, 20), Call(9, kReduce, kWaiting, 12)}})[0].position;
  const std::string bytes = Encode(sent);
  const auto got = DecodePosition(bytes);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(Encode(*got), bytes);
  EXPECT_EQ(got->WaitingSeconds(), 12);
  EXPECT_EQ(got->groups.at(kTp).members, std::vector<int>{0});
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(DecodePosition(bytes.substr(0, length)).has_value()) << length;
  }
}

}  // namespace
}  // namespace plait::comm
