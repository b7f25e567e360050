#include "base/timer.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "base/timer_report.h"
#include "gtest/gtest.h"

namespace plait::base {
namespace {

// Two passes in long double: independent of the running update that is tested.
long double MeanOf(const std::vector<double>& samples) {
  long double sum = 0;
  for (const double sample : samples) sum += sample;
  return sum / samples.size();
}

long double StdevOf(const std::vector<double>& samples) {
  const long double mean = MeanOf(samples);
  long double squares = 0;
  for (const double sample : samples) squares += (sample - mean) * (sample - mean);
  return std::sqrt(squares / (samples.size() - 1));
}

// Samples far from zero with a small spread: the textbook formula E[x^2] - E[x]^2 loses all digits here.
std::vector<double> OffsetSamples(int count) {
  std::vector<double> samples;
  for (int i = 0; i < count; ++i) samples.push_back(1e6 + 1e-3 * ((i * 7919) % 101));
  return samples;
}

// Each sample is rounded relative to its size; the spread inherits eps * |x|, some ten times over.
double StdevTolerance(double size) { return 10 * std::numeric_limits<double>::epsilon() * size; }

TEST(TimerTest, MomentsMatchTwoPassOracle) {
  const std::vector<double> samples = OffsetSamples(1000);
  Timer timer;
  for (const double sample : samples) timer.Add(sample);
  EXPECT_EQ(timer.count(), 1000);
  EXPECT_NEAR(timer.stdev_seconds(), static_cast<double>(StdevOf(samples)), StdevTolerance(1e6));
  // A sum of n terms is off by at most n * eps * its size.
  EXPECT_NEAR(timer.mean_seconds(), static_cast<double>(MeanOf(samples)),
              1000 * std::numeric_limits<double>::epsilon() * 1e6);
}

TEST(TimerTest, StdevIsOfASample) {
  Timer timer;
  EXPECT_EQ(timer.stdev_seconds(), 0);
  timer.Add(1);
  EXPECT_EQ(timer.stdev_seconds(), 0);
  timer.Add(3);
  EXPECT_DOUBLE_EQ(timer.stdev_seconds(), std::sqrt(2.0));  // not 1, the population's
}

TEST(TimerTest, MergeEqualsAddingAll) {
  const std::vector<double> samples = OffsetSamples(300);
  Timer left, right, empty;
  for (int i = 0; i < 300; ++i) (i < 40 ? left : right).Add(samples[i]);
  left.Merge(right);
  left.Merge(empty);
  EXPECT_EQ(left.count(), 300);
  EXPECT_NEAR(left.stdev_seconds(), static_cast<double>(StdevOf(samples)), StdevTolerance(1e6));
  empty.Merge(left);
  EXPECT_EQ(empty.count(), 300);
  EXPECT_EQ(empty.stdev_seconds(), left.stdev_seconds());
}

TEST(TimerTest, ScopeMeasuresAtLeastItsLengthOnce) {
  Timer timer;
  {
    ScopedTimer scope(timer);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    scope.Stop();
    scope.Stop();
  }
  EXPECT_EQ(timer.count(), 1);
  EXPECT_GE(timer.total_seconds(), 0.005);
}

TEST(TimerSetTest, ReferencesSurviveGrowthAndReset) {
  TimerSet timers;
  Timer& first = timers.Get("m");
  for (int i = 0; i < 1000; ++i) timers.Get(std::to_string(i));
  first.Add(1);
  EXPECT_EQ(timers.Find("m")->count(), 1);
  EXPECT_EQ(timers.Find("absent"), nullptr);
  timers.Reset();
  EXPECT_EQ(first.count(), 0);
}

TEST(TimerSetTest, MergeIsByName) {
  TimerSet a, b;
  a.Get("x").Add(1);
  b.Get("x").Add(2);
  b.Get("y").Add(4);
  a.Merge(b);
  EXPECT_EQ(a.Find("x")->total_seconds(), 3);
  EXPECT_EQ(a.Find("y")->total_seconds(), 4);
}

void AddMany(Timer& timer, int count, double seconds) {
  for (int i = 0; i < count; ++i) timer.Add(seconds);
}

// Layout of the published run log, character by character.
TEST(TimerTableTest, LooksLikeTheRunLog) {
  TimerSet timers;
  AddMany(timers.Get("ForWD::getPrimalWithGrad-short"), 8, 0.5);
  AddMany(timers.Get("BckWD::bufsize"), 592, 0.25);
  AddMany(timers.Get("BckWD::access"), 9768, 0.125);
  timers.Get("Zero::never ran");
  EXPECT_EQ(TimerTable(timers, 0),
            "\n"
            "   *** Proc = 0        ***\n"
            "              timer              ||      count       |      total       |"
            "       mean       |      stdev       |\n"
            "======================================================\n"
            "  BckWD::access                  ||       9768       |    1.2210e+03    |"
            "    1.2500e-01    |    0.0000e+00    |\n"
            "  BckWD::bufsize                 ||       592        |    1.4800e+02    |"
            "    2.5000e-01    |    0.0000e+00    |\n"
            "  ForWD::getPrimalWithGrad-short ||        8         |    4.0000e+00    |"
            "    5.0000e-01    |    0.0000e+00    |\n");
}

TEST(TimerTableTest, LongNamesWidenTheColumn) {
  TimerSet timers;
  timers.Get(std::string(40, 'n')).Add(1);
  timers.Get("short").Add(1);
  const std::string table = TimerTable(timers, 12);
  EXPECT_NE(table.find("   *** Proc = 12       ***\n"), std::string::npos);
  EXPECT_NE(table.find("  short" + std::string(35, ' ') + " || "), std::string::npos);
  EXPECT_NE(table.find("  " + std::string(40, 'n') + " || "), std::string::npos);
}

}  // namespace
}  // namespace plait::base
