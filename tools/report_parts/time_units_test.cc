#include "tools/report_parts/time_units.h"

#include <gtest/gtest.h>

#include "tools/report_parts/rank_numbers.h"

namespace plait::report {
namespace {

data::TableMetric Metric(const char* name, const char* units = "") {
  data::TableMetric metric;
  metric.name = name;
  metric.units = units;
  return metric;
}

TEST(TimeUnits, AreThoseThatFilesHave) {
  EXPECT_EQ(SecondsIn("s"), 1);
  EXPECT_EQ(SecondsIn("milliseconds"), 1e-3);
  EXPECT_EQ(SecondsIn("μs"), 1e-6);
  EXPECT_EQ(SecondsIn("ns"), 1e-9);
  EXPECT_EQ(SecondsIn("min"), 60);
  EXPECT_EQ(SecondsIn("hours"), 3600);
  for (const char* other : {"", "1", "1/s", "percent", "cycles", "bytes", "m", "S"})
    EXPECT_EQ(SecondsIn(other), 0);
}

TEST(TimeUnits, WithoutUnitsTheNameTells) {
  for (const char* time : {"dt", "train_dt", "train/dtf", "step_time", "dtb_per_rank"}) {
    EXPECT_EQ(SecondsPerUnit(Metric(time)), 1) << time;
    EXPECT_EQ(SecondsPerUnit(Metric(time, "ms")), 1e-3) << time;
    EXPECT_EQ(SecondsPerUnit(Metric(time, "cycles")), 0) << time;
  }
  EXPECT_EQ(SecondsPerUnit(Metric("loss")), 0);
}

TEST(FactorBetween, ConvertsTimesOnly) {
  EXPECT_DOUBLE_EQ(FactorBetween(Metric("dt", "ms"), Metric("dt", "s")), 1e-3);
  EXPECT_DOUBLE_EQ(FactorBetween(Metric("x", "min"), Metric("x", "us")), 60e6);
  EXPECT_EQ(FactorBetween(Metric("x", "seconds"), Metric("x", "s")), 1);
  EXPECT_DOUBLE_EQ(FactorBetween(Metric("dt"), Metric("dt", "ms")), 1e3) << "dt without units is in seconds";
  EXPECT_EQ(FactorBetween(Metric("dt", "cycles"), Metric("dt", "s")), 0);
  EXPECT_EQ(FactorBetween(Metric("latency"), Metric("latency", "ms")), 0);
  EXPECT_EQ(FactorBetween(Metric("loss", "nats"), Metric("loss", "bits")), 0);
  EXPECT_EQ(FactorBetween(Metric("loss", "nats"), Metric("loss", "nats")), 1);
  EXPECT_EQ(FactorBetween(Metric("loss"), Metric("loss", "1")), 1) << "taken to be the same";
}

TEST(SlowestOf, TimesAndRates) {
  EXPECT_EQ(SlowestOf(Metric("wait_per_rank", "ms")), SlowestIs::kLargest);
  EXPECT_EQ(SlowestOf(Metric("dt_per_rank")), SlowestIs::kLargest);
  for (const char* rate : {"1/s", "s-1", "samples/s", "Hz", "GB/s"}) {
    EXPECT_EQ(SlowestOf(Metric("x_per_rank", rate)), SlowestIs::kLowest) << rate;
  }
  EXPECT_EQ(SlowestOf(Metric("tps_per_rank")), SlowestIs::kLowest);
  for (const char* other : {"percent", "1", "bytes", ""}) {
    EXPECT_EQ(SlowestOf(Metric("mfu_per_rank", other)), SlowestIs::kUnknown) << other;
  }
}

}  // namespace
}  // namespace plait::report
