// The axes of a run that was resumed in a new file. All numbers by hand.
#include "tools/report_parts/curve_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "data/history/history.h"

namespace plait::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Three steps of 100 tokens and 0.5 s; the first draw is an estimate before them.
RunNumbers RunFrom(int step, const std::string& began_at_step) {
  const std::string path = absl::StrCat(testing::TempDir(), "/curve_data_from_", step, ".h5");
  std::filesystem::remove(path);
  auto history = *data::History::Create(path, {.attributes = {{"began_at_step", began_at_step}}});
  EXPECT_TRUE(history->Declare({"dt", "s", "time per step"}).ok());
  const auto append = [&](std::vector<data::Scalar> scalars) { EXPECT_TRUE(history->Append(scalars).ok()); };
  append({{"step", 1.0 * step}, {"loss", 9}, {"tokens", kNaN}, {"dt", kNaN}});
  for (int i = 1; i < 4; ++i) {
    append({{"step", 1.0 * (step + i)}, {"loss", 9.0 - i}, {"tokens", 100}, {"dt", 0.5}});
  }
  EXPECT_TRUE(history->Close().ok());
  return *ReadRun(path, {});
}

TEST(CurveJson, AContinuationInANewFileGoesOnAtTheTokensOfTheEarlierRun) {
  const RunNumbers first = RunFrom(0, "0"), later = RunFrom(20, "20");
  const std::string json = *CurveJson(std::vector<RunNumbers>{first, later});
  EXPECT_THAT(json, HasSubstr(R"("tokens":[0,100,200,300])"));
  EXPECT_THAT(json, HasSubstr(R"("tokens":[2000,2100,2200,2300])"));
  EXPECT_THAT(first.notes, IsEmpty());
  EXPECT_THAT(later.notes,
              ElementsAre("The file begins after step 20 of its run: times so far count from there on."));
}

}  // namespace
}  // namespace plait::report
