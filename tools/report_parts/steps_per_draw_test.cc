// Histories whose draws cover several steps. All numbers by hand.
#include "tools/report_parts/steps_per_draw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "absl/strings/str_cat.h"
#include "data/history/history.h"
#include "tools/report_parts/page_blocks.h"
#include "tools/report_parts/run_numbers.h"

namespace plait::report {
namespace {

using data::HistoryTable;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::NanSensitiveDoubleEq;

constexpr char kPerEpoch[] = "training in the epoch, by rank";

using Draws = std::vector<std::vector<data::Scalar>>;

class StepsPerDrawTest : public ::testing::Test {
 protected:
  StepsPerDrawTest() { std::filesystem::remove(path_); }

  void Write(const Draws& draws, std::map<std::string, std::string> attributes = {},
             const std::string& dt = kPerEpoch) {
    std::filesystem::remove(path_);
    auto history = *data::History::Create(path_, {.attributes = std::move(attributes)});
    ASSERT_TRUE(history->Declare({"dt", "s", dt}).ok());
    ASSERT_TRUE(history->Declare({"comm_bytes_dp", "bytes", "sent by a rank"}).ok());
    for (const std::vector<data::Scalar>& draw : draws) ASSERT_TRUE(history->Append(draw).ok());
    ASSERT_TRUE(history->Close().ok());
  }

  std::vector<double> Steps() const { return *StepsPerDraw(*HistoryTable::Open(path_)); }

  std::string path_ = absl::StrCat(testing::TempDir(), "/",
                                   testing::UnitTest::GetInstance()->current_test_info()->name(), ".h5");
};

// Epochs of 8, 8 and 4 steps.
const Draws kEpochs = {
    {{"step", 8}, {"dt", 0.8}, {"comm_bytes_dp", 800}, {"comm_in_flight_dp", 8}, {"comm_exposed_dp", 4}},
    {{"step", 16}, {"dt", 1.6}, {"comm_bytes_dp", 1600}, {"comm_in_flight_dp", 4}, {"comm_exposed_dp", 2}},
    {{"step", 20}, {"dt", 0.2}, {"comm_bytes_dp", 200}, {"comm_in_flight_dp", 2}, {"comm_exposed_dp", 1}}};

TEST_F(StepsPerDrawTest, RatesAndTrafficAreOfAStep) {
  Write(kEpochs);
  EXPECT_THAT(Steps(), ElementsAre(8, 8, 4));
  const RunNumbers run = *ReadRun(path_, {});
  // 0.1, 0.2 and 0.05 s; 100, 200 and 50 bytes; 14 and 7 s in 20 steps.
  ASSERT_EQ(run.rates.size(), 1);
  EXPECT_DOUBLE_EQ(run.rates[0].median, 10);
  ASSERT_EQ(run.traffic.size(), 1);
  EXPECT_DOUBLE_EQ(run.traffic[0].bytes_per_step, 100);
  EXPECT_DOUBLE_EQ(run.traffic[0].total_bytes, 2600);
  EXPECT_DOUBLE_EQ(run.traffic[0].in_flight_seconds, 0.7);
  EXPECT_DOUBLE_EQ(run.traffic[0].exposed_seconds, 0.35);
  EXPECT_DOUBLE_EQ(run.traffic[0].overlap, 0.5);
  EXPECT_THAT(Tiles({run}), HasSubstr("<h3>Median step</h3><p><b>100 ms</b>"));
  EXPECT_DOUBLE_EQ(run.Find("dt")->summary.median, 0.8) << "the metric stays as it is recorded";
}

TEST_F(StepsPerDrawTest, TokensOfADrawAreDividedByItsTime) {
  Draws epochs = kEpochs;
  const double tokens[] = {80, 90, 20};
  for (std::size_t i = 0; i < epochs.size(); ++i) epochs[i].push_back({"tokens", tokens[i]});
  Write(epochs);
  const RunNumbers run = *ReadRun(path_, {});
  ASSERT_EQ(run.rates.size(), 2);
  EXPECT_EQ(run.rates[1].name, "tokens");
  EXPECT_DOUBLE_EQ(run.rates[1].median, 100) << "80 in 0.8 s";
}

TEST_F(StepsPerDrawTest, ChosenMetricsAndLeftOutDrawsChangeNothing) {
  Write(kEpochs);
  const RunNumbers run = *ReadRun(path_, {.metrics = {"dt"}, .skip = 1});
  ASSERT_EQ(run.rates.size(), 1);
  EXPECT_DOUBLE_EQ(run.rates[0].median, 8) << "of 0.2 and 0.05 s";
}

TEST_F(StepsPerDrawTest, ATimeOfOneStepIsNotDivided) {
  for (const char* name : {"time per step", "of the step", ""}) {
    Write(kEpochs, {}, name);
    const RunNumbers run = *ReadRun(path_, {});
    ASSERT_EQ(run.rates.size(), 1) << name;
    EXPECT_DOUBLE_EQ(run.rates[0].median, 1.25) << name;
    EXPECT_DOUBLE_EQ(run.traffic[0].bytes_per_step, 100) << "messages are summed since the last draw";
  }
  Write(kEpochs, {}, "training since the last validation, by rank");
  EXPECT_DOUBLE_EQ(ReadRun(path_, {})->rates[0].median, 10);
}

TEST(IsSumOverSteps, InAnyUnitOfTime) {
  data::TableMetric dt;
  dt.name = "dt";
  dt.long_name = kPerEpoch;
  for (const char* units : {"s", "ms", "min"}) {
    dt.units = units;
    EXPECT_TRUE(IsSumOverSteps(dt)) << units;
  }
  dt.units = "1/s";
  EXPECT_FALSE(IsSumOverSteps(dt));
}

TEST_F(StepsPerDrawTest, WithoutACountOfStepsADrawIsAStep) {
  Write({{{"dt", 0.5}, {"comm_bytes_dp", 7}}, {{"dt", 0.5}, {"comm_bytes_dp", 7}}});
  EXPECT_THAT(Steps(), IsEmpty());
  const RunNumbers run = *ReadRun(path_, {});
  EXPECT_DOUBLE_EQ(run.rates[0].median, 2);
  EXPECT_DOUBLE_EQ(run.traffic[0].bytes_per_step, 7);
}

// As train_gpt records an estimate before the first step, and train_gru a test after the last of an epoch.
TEST_F(StepsPerDrawTest, DrawsWithoutStepsCoverNone) {
  Write({{{"step", 0}}, {{"step", 1}}, {{"step", 2}}, {{"step", 2}}, {{"step", 3}}});
  const auto nan = NanSensitiveDoubleEq(kNaN);
  EXPECT_THAT(Steps(), ElementsAre(nan, 1, 1, nan, 1));
}

TEST_F(StepsPerDrawTest, AResumedRunLeavesOutWhatItCannotKnow) {
  const auto nan = NanSensitiveDoubleEq(kNaN);
  // In a new file, after 16 steps.
  Write({{{"step", 24}, {"dt", 0.8}}, {{"step", 32}, {"dt", 1.6}}}, {{"began_at_step", "16"}});
  EXPECT_THAT(Steps(), ElementsAre(nan, 8));
  EXPECT_DOUBLE_EQ(ReadRun(path_, {})->rates[0].median, 5) << "of 0.2 s";
  Write({{{"step", 24}, {"dt", 0.8}}}, {{"began_at_step", "16"}});
  EXPECT_THAT(ReadRun(path_, {})->rates, IsEmpty());
  // In the same file, within an epoch.
  Write(kEpochs, {{"resumed_at_draw", "1"}});
  EXPECT_THAT(Steps(), ElementsAre(8, nan, 4));
  // Within the second and the third epoch.
  Write(kEpochs, {{"resumed_at_draw", "2"}, {"resumed_at_draws", "1 2"}});
  EXPECT_THAT(Steps(), ElementsAre(8, nan, nan));
  // From the beginning again: a run that was killed before its first checkpoint.
  Write(kEpochs, {{"resumed_at_draw", "0"}, {"began_at_step", "0"}});
  EXPECT_THAT(Steps(), ElementsAre(8, 8, 4));
  // A draw of one step is complete.
  Write({{{"step", 1}}, {{"step", 2}}, {{"step", 3}}}, {{"resumed_at_draw", "1"}});
  EXPECT_THAT(Steps(), ElementsAre(1, 1, 1));
  // Draw 1 was lost in a power failure.
  Write({{{"step", 8}}, {{"step", kNaN}}, {{"step", 24}}, {{"step", 32}}});
  EXPECT_THAT(Steps(), ElementsAre(8, nan, nan, 8));
}

}  // namespace
}  // namespace plait::report
