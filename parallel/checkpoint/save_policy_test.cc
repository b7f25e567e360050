// Decisions are the same on all ranks, although clocks and signals differ.
#include "parallel/checkpoint/save_policy.h"

#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/gathered_text.h"
#include "comm/testing/world.h"

namespace plait::parallel {
namespace {

const comm::Communicator& World() { return comm::testing::World(); }

EnvironmentLookup Variables(std::map<std::string, std::string> values) {
  return [values](const char* name) -> const char* {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  };
}

// "30" for save, "30!" for save and stop, of all steps; the same on all ranks.
std::string Decisions(SavePolicyOptions options, const std::vector<double>& seconds_at_step,
                      std::int64_t stop_at = -1, double save_seconds = 0,
                      std::optional<double> start_seconds = {}) {
  double now = seconds_at_step[0];
  options.now_seconds = [&now] { return now; };
  options.start_seconds = start_seconds.value_or(now);
  if (!options.lookup("PBS_WALLTIME") && !options.lookup("SLURM_JOB_END_TIME"))
    options.lookup = Variables({});
  SavePolicy policy(World(), options);
  std::string text;
  for (std::size_t step = 1; step < seconds_at_step.size(); ++step) {
    now = seconds_at_step[step];
    // Only the last rank gets the signal.
    const bool stop = static_cast<std::int64_t>(step) >= stop_at && stop_at >= 0;
    const SaveDecision decision = policy.Decide(static_cast<std::int64_t>(step),
                                                stop && World().rank() == World().size() - 1 ? SIGUSR1 : 0);
    EXPECT_EQ(decision.signal, decision.stop && stop_at >= 0 ? SIGUSR1 : 0);
    EXPECT_EQ(decision.reason == "SIGUSR1", decision.signal != 0);
    if (decision.save) {
      absl::StrAppend(&text, text.empty() ? "" : " ", step, decision.stop ? "!" : "");
      EXPECT_NE(decision.reason, "");
      policy.NoteSave(save_seconds);
    }
    if (decision.stop) break;
  }
  for (const std::string& other : comm::GatherText(World(), text)) EXPECT_EQ(other, text);
  return text;
}

std::vector<double> EverySecond(double first, int steps) {
  std::vector<double> seconds;
  for (int step = 0; step <= steps; ++step) seconds.push_back(first + step);
  return seconds;
}

TEST(SavePolicy, ByStepsAndByTime) {
  EXPECT_EQ(Decisions({}, EverySecond(0, 50)), "");
  EXPECT_EQ(Decisions({.every_steps = 4}, EverySecond(0, 13)), "4 8 12");
  EXPECT_EQ(Decisions({.every_seconds = 5}, EverySecond(0, 13)), "5 10");
  EXPECT_EQ(Decisions({.every_steps = 3, .every_seconds = 5}, {0, 1, 2, 3, 9, 10, 11, 12}), "3 4 6");
  // Rank 0's clock counts: the others' run twice as fast.
  std::vector<double> seconds = EverySecond(0, 12);
  for (double& second : seconds) second *= World().rank() == 0 ? 1 : 2;
  EXPECT_EQ(Decisions({.every_seconds = 4}, seconds), "4 8 12");
}

TEST(SavePolicy, ASignalToOneRankStopsAll) {
  EXPECT_EQ(Decisions({}, EverySecond(0, 20), 7), "7!");
  EXPECT_EQ(Decisions({.every_steps = 3, .check_every_steps = 5}, EverySecond(0, 20), 7), "3 6 9 10!");
}

TEST(SavePolicy, TheEndOfTheJobLessMarginSaveAndCheck) {
  // 100 s; 10 s of margin and the second between two checks.
  EXPECT_EQ(Decisions({.walltime_seconds = 100, .margin_seconds = 10}, EverySecond(1000, 200)), "89!");
  // And the longest save, 20 s, once there was one.
  EXPECT_EQ(Decisions({.every_steps = 50, .walltime_seconds = 100, .margin_seconds = 10},
                      EverySecond(1000, 200), -1, 20),
            "50 69!");
  // Checked every 8 steps: 8 s from one check to the next.
  EXPECT_EQ(Decisions({.walltime_seconds = 100, .margin_seconds = 10, .check_every_steps = 8},
                      EverySecond(1000, 200)),
            "88!");
  EXPECT_EQ(Decisions({.margin_seconds = 10, .lookup = Variables({{"SLURM_JOB_END_TIME", "1050"}})},
                      EverySecond(1000, 200)),
            "39!");
  // The limit counts from the program's start, 30 s before.
  EXPECT_EQ(Decisions({.margin_seconds = 10, .lookup = Variables({{"PBS_WALLTIME", "100"}})},
                      EverySecond(1030, 200), -1, 0, 1000),
            "59!");
  // The 40 s of set-up before the first check are no time between two checks.
  std::vector<double> after_setup = EverySecond(1040, 200);
  after_setup[0] = 1000;
  EXPECT_EQ(Decisions({.walltime_seconds = 100, .margin_seconds = 10}, after_setup), "49!");
  // The earliest clock counts: one rank is 30 s ahead.
  const double ahead = World().rank() == World().size() - 1 ? 30 : 0;
  EXPECT_EQ(Decisions({.margin_seconds = 10, .lookup = Variables({{"SLURM_JOB_END_TIME", "1050"}})},
                      EverySecond(1000 + ahead, 200)),
            "9!");
}

TEST(ProcessStart, IsBeforeNowAndAfterItsParents) {
  const double start = ProcessStartSeconds(), now = WallClockSeconds();
  EXPECT_LE(start, now);
  EXPECT_GT(start, now - 600);  // the test's time limit
  EXPECT_NEAR(ProcessStartSeconds(), start, 0.1);
}

TEST(JobEnd, TheEarliestThatIsKnown) {
  EXPECT_FALSE(JobEndSeconds(5, 0, Variables({})).has_value());
  EXPECT_EQ(JobEndSeconds(5, 60, Variables({})), 65);
  EXPECT_EQ(JobEndSeconds(5, 0, Variables({{"SLURM_JOB_END_TIME", "1700000000"}})), 1.7e9);
  EXPECT_EQ(JobEndSeconds(5, 0, Variables({{"COBALT_ENDTIME", "1700000000.5"}})), 1.7e9 + 0.5);
  EXPECT_EQ(JobEndSeconds(5, 0, Variables({{"PBS_WALLTIME", "3600"}})), 3605);
  EXPECT_EQ(JobEndSeconds(5, 60, Variables({{"PBS_WALLTIME", "3600"}})), 65);
  EXPECT_EQ(JobEndSeconds(5, 7200, Variables({{"PBS_WALLTIME", "3600"}})), 3605);
  for (const char* nonsense : {"", "soon", "-1", "0", "nan"}) {
    EXPECT_FALSE(JobEndSeconds(5, 0, Variables({{"SLURM_JOB_END_TIME", nonsense}})).has_value()) << nonsense;
  }
}

}  // namespace
}  // namespace plait::parallel
