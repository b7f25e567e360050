#include "base/log.h"

#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spdlog/sinks/ostream_sink.h"

namespace plait::base {
namespace {

// All that a logger with these options writes when asked to say something at three levels.
std::string Written(const LogOptions& options) {
  std::ostringstream out;
  const auto logger = MakeLogger(options, std::make_shared<spdlog::sinks::ostream_sink_mt>(out));
  if (!logger.ok()) return std::string(logger.status().message());
  (*logger)->debug("looked");
  (*logger)->info("{} windows", 7);
  (*logger)->critical("gone");
  return out.str();
}

TEST(LogTest, RankZeroSaysInfoAndAbove) {
  EXPECT_THAT(Written({.rank = 0, .ranks = 2}),
              testing::MatchesRegex("..:..:.. rank 0 info: 7 windows\n..:..:.. rank 0 critical: gone\n"));
}

TEST(LogTest, OneRankHasNoName) {
  EXPECT_THAT(Written({}), testing::MatchesRegex("..:..:.. info: 7 windows\n..:..:.. critical: gone\n"));
}

TEST(LogTest, OthersOnlySayWhatIsCritical) {
  EXPECT_THAT(Written({.rank = 1, .ranks = 2}), testing::MatchesRegex("..:..:.. rank 1 critical: gone\n"));
}

TEST(LogTest, LevelForAllRanks) {
  EXPECT_THAT(Written({.rank = 1, .ranks = 2, .level = "debug"}),
              testing::HasSubstr("rank 1 debug: looked\n"));
  EXPECT_EQ(Written({.level = "off"}), "");
}

TEST(LogTest, UnknownLevel) {
  EXPECT_EQ(Written({.level = "loud"}),
            "log level 'loud': expected trace, debug, info, warning, error, critical or off");
}

}  // namespace
}  // namespace plait::base
