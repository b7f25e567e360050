// The key figures of a page.
#include "tools/report_parts/page_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plait::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string TilesOf(std::vector<Rate> rates) {
  RunNumbers run;
  run.rates = std::move(rates);
  return Tiles({run});
}

TEST(PageBlocks, SamplesPerSecondOfAllRanksAreCalledSo) {
  const std::string gpt = TilesOf({{"sps", "samples per second of all ranks", 8, 7, 9}});
  EXPECT_THAT(gpt, HasSubstr("<h3>Samples per second, all ranks</h3><p><b>8</b> <small>7 to 9</small>"));
  EXPECT_THAT(gpt, Not(HasSubstr("one rank")));
  const std::string test_dist = TilesOf({{"sps", "samples per second of a rank", 8, 7, 9},
                                         {"sps_world", "samples per second of all ranks", 16, 14, 18}});
  EXPECT_THAT(test_dist, HasSubstr("<h3>Samples per second, all ranks</h3><p><b>16</b>"));
  EXPECT_THAT(test_dist, HasSubstr("<h3>Samples per second, one rank</h3><p><b>8</b>"));
  EXPECT_THAT(TilesOf({{"sps", "sps", 8, 7, 9}}), HasSubstr("<h3>Samples per second, one rank</h3>"))
      << "without a long name";
}

TEST(PageBlocks, TokensPerSecondAreThoseOfAllRanks) {
  const Rate all = {"tps", "tokens per second of all ranks", 512, 500, 520};
  const Rate of_a_step = {"tokens", "tokens per second, of the median step", 640, 600, 700};
  EXPECT_THAT(TilesOf({all}), HasSubstr("<h3>Tokens per second</h3><p><b>512</b> <small>500 to 520"));
  EXPECT_THAT(TilesOf({all, of_a_step}), HasSubstr("<h3>Tokens per second</h3><p><b>512</b>"));
  EXPECT_THAT(TilesOf({{"tps", "tokens per second of a rank", 256, 250, 260}, of_a_step}),
              HasSubstr("<h3>Tokens per second</h3><p><b>640</b>"));
  EXPECT_THAT(TilesOf({{"sps", "sps", 8, 7, 9}}), Not(HasSubstr("Tokens")));
}

}  // namespace
}  // namespace plait::report
