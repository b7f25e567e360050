#include "base/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plait::base {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

using Variables = std::map<std::string, std::string>;

LogOptions With(LogOptions options, const Variables& variables) {
  options.lookup = [variables](const char* name) -> const char* {
    static thread_local std::string value;
    const auto found = variables.find(name);
    if (found == variables.end()) return nullptr;
    value = found->second;
    return value.c_str();
  };
  return options;
}

// What a log with these options writes for messages at three levels.
std::string Written(const LogOptions& options, const Variables& variables = {}) {
  std::string out;
  const auto log =
      MakeLog(With(options, variables), [&](absl::string_view line) { out += std::string(line); });
  if (!log.ok()) return std::string(log.status().message());
  log->Debug("looked");
  log->Info("7 {windows}");
  log->Critical("gone");
  return out;
}

constexpr char kTime[] = R"(\[20..-..-.. ..:..:..\.......\])";

TEST(LogTest, LinesHaveTimeInMicrosecondsLevelAndPlace) {
  std::string out;
  const auto log = MakeLog(With({}, {}), [&](absl::string_view line) { out = std::string(line); });
  log->Info("7 windows");
  const int line = __LINE__ - 1;
  EXPECT_THAT(out, MatchesRegex(std::string(kTime) + R"(\[INFO\]\[log_test:)" + std::to_string(line) +
                                R"(\] - 7 windows)" + "\n"));
  log->Warning("few");
  EXPECT_THAT(out, HasSubstr("][WARNING][log_test:"));
  log->Write(LogLevel::kError, "none");
  EXPECT_THAT(out, HasSubstr("][ERROR][log_test:"));
}

TEST(LogTest, RankZeroSaysInfoAndAbove) {
  EXPECT_THAT(Written({}),
              AllOf(Not(HasSubstr("looked")), HasSubstr("] - 7 {windows}\n"), HasSubstr("] - gone\n")));
}

TEST(LogTest, OthersOnlySayWhatIsCriticalAndWhoTheyAre) {
  EXPECT_THAT(
      Written({.rank = 3}),
      MatchesRegex(std::string(kTime) + R"(\[CRITICAL\]\[log_test:[0-9]+\]\[rank 3\] - gone)" + "\n"));
}

TEST(LogTest, TheEnvironmentGivesLevelAndRanks) {
  EXPECT_THAT(Written({}, {{"LOG_LEVEL", "debug"}}), HasSubstr("] - looked\n"));
  EXPECT_THAT(Written({.rank = 3}, {{"LOG_LEVEL", "DEBUG"}}), Not(HasSubstr("windows")));
  EXPECT_THAT(Written({.rank = 3}, {{"LOG_FROM_ALL_RANKS", "1"}}),
              AllOf(HasSubstr("[rank 3] - 7 {windows}\n"), Not(HasSubstr("looked"))));
  EXPECT_THAT(Written({.rank = 3}, {{"LOG_FROM_ALL_RANKS", "0"}}), Not(HasSubstr("windows")));
  EXPECT_THAT(Written({.rank = 3}, {{"LOG_FROM_ALL_RANKS", "1"}, {"LOG_LEVEL", "debug"}}),
              HasSubstr("looked"));
}

TEST(LogTest, OptionsComeBeforeTheEnvironment) {
  EXPECT_EQ(Written({.level = "off"}, {{"LOG_LEVEL", "debug"}}), "");
  EXPECT_THAT(Written({.rank = 3, .level = "debug", .all_ranks = true}), HasSubstr("looked"));
}

TEST(LogTest, UnknownLevelsSayWhereTheyStand) {
  EXPECT_EQ(Written({.level = "loud"}),
            "log level 'loud': expected trace, debug, info, warning, error, critical or off");
  EXPECT_EQ(Written({.rank = 1}, {{"LOG_LEVEL", "loud"}}),
            "LOG_LEVEL='loud': expected trace, debug, info, warning, error, critical or off");
}

TEST(LogTest, AnEmptyLogIsSilent) {
  const Log log;
  EXPECT_FALSE(log.Shows(LogLevel::kCritical));
  log.Critical("nobody hears");
}

TEST(LogTest, TellsWhetherAMessageWouldBeShown) {
  const auto log = MakeLog(With({}, {}), [](absl::string_view) {});
  EXPECT_TRUE(log->Shows(LogLevel::kInfo));
  EXPECT_FALSE(log->Shows(LogLevel::kDebug));
}

// What is written to a file descriptor, redirected to `target`, while a message is logged.
std::string Captured(int file_descriptor, int target, int read_end, const LogOptions& options) {
  std::fflush(nullptr);
  const int kept = dup(file_descriptor);
  dup2(target, file_descriptor);
  MakeLog(options)->Info("seen");
  std::fflush(nullptr);
  dup2(kept, file_descriptor);
  close(kept);
  // A terminal may hand a line over in parts.
  std::string text;
  char buffer[1000];
  while (text.find('\n') == std::string::npos) {
    const ssize_t count = read(read_end, buffer, sizeof buffer);
    if (count <= 0) break;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return text;
}

TEST(LogTest, TheStreamIsChosen) {
  for (const auto& [stream, descriptor] : {std::pair(LogStream::kStandardError, STDERR_FILENO),
                                           std::pair(LogStream::kStandardOutput, STDOUT_FILENO)}) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const std::string text = Captured(descriptor, ends[1], ends[0], With({.stream = stream}, {}));
    EXPECT_THAT(text, AllOf(HasSubstr("][INFO][log_test:"), HasSubstr("seen"), Not(HasSubstr("\033["))));
    close(ends[0]);
    close(ends[1]);
  }
}

TEST(LogTest, ColoursOnATerminalUnlessNotWanted) {
  setenv("TERM", "xterm", 1);
  const int controller = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(controller, 0);
  ASSERT_EQ(grantpt(controller), 0);
  ASSERT_EQ(unlockpt(controller), 0);
  const int terminal = open(ptsname(controller), O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  const auto on_terminal = [&](const Variables& variables) {
    return Captured(STDERR_FILENO, terminal, controller, With({}, variables));
  };
  EXPECT_THAT(on_terminal({}), HasSubstr("\033["));
  EXPECT_THAT(on_terminal({{"NO_COLOR", "1"}}), AllOf(HasSubstr("seen"), Not(HasSubstr("\033["))));
  EXPECT_THAT(on_terminal({{"NO_COLOR", ""}}), HasSubstr("\033["));
  close(terminal);
  close(controller);
}

}  // namespace
}  // namespace plait::base
