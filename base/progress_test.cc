#include "base/progress.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "gtest/gtest.h"

namespace plait::base {
namespace {

constexpr Terminal kFile = {.interactive = false, .colour = false, .columns = 80};
constexpr Terminal kPlainTerminal = {.interactive = true, .colour = false, .columns = 80};

// What a terminal shows in its last line after all of `text`. The cursor is in front of it.
std::string LastShownLine(const std::string& text) {
  const std::string erase = "\r\033[K";
  const std::size_t newline = text.rfind('\n');
  std::string line = newline == std::string::npos ? text : text.substr(newline + 1);
  if (const std::size_t erased = line.rfind(erase); erased != std::string::npos)
    line = line.substr(erased + erase.size());
  EXPECT_TRUE(line.empty() || line.back() == '\r') << line;
  return line.substr(0, line.find('\r'));
}

class ProgressTest : public testing::Test {
 protected:
  ProgressOptions Options(std::int64_t total) {
    ProgressOptions options;
    options.label = "epoch 1";
    options.total = total;
    options.now_seconds = [this] { return now_seconds_; };
    return options;
  }

  std::ostringstream out_;
  double now_seconds_ = 100;
};

TEST_F(ProgressTest, BarShowsShareAndTimeLeft) {
  Progress progress(out_, kPlainTerminal, Options(100));
  now_seconds_ += 10;
  progress.Update(25);  // 10 s for a quarter: 30 s left
  EXPECT_EQ(LastShownLine(out_.str()), "epoch 1 [=========>                            ]  25% 0:30 left");
}

TEST_F(ProgressTest, DrawsAtMostTenTimesASecond) {
  Progress progress(out_, kPlainTerminal, Options(100000));
  for (int i = 1; i < 100000; ++i) {
    now_seconds_ += 1e-5;
    progress.Update(i);
  }
  const std::string text = out_.str();
  EXPECT_LE(std::count(text.begin(), text.end(), '%'), 11);
  EXPECT_GE(std::count(text.begin(), text.end(), '%'), 9);
}

TEST_F(ProgressTest, NeverWiderThanTheTerminal) {
  for (const int columns : {20, 25, 40, 80, 200}) {
    for (const std::size_t length : {0, 7, 60}) {
      out_.str("");
      ProgressOptions options = Options(1000000);
      options.label = std::string(length, 'n');
      Progress progress(out_, {.interactive = true, .colour = false, .columns = columns}, options);
      now_seconds_ += 36000;
      progress.Update(100000);  // 90 hours left: as wide as times become
      EXPECT_LT(LastShownLine(out_.str()).size(), static_cast<std::size_t>(columns))
          << columns << " " << length;
      EXPECT_NE(LastShownLine(out_.str()).find(" 10% "), std::string::npos);
    }
  }
}

TEST_F(ProgressTest, FortyColumnsStillHaveABar) {
  Progress progress(out_, {.interactive = true, .colour = false, .columns = 40}, Options(4));
  now_seconds_ += 1;
  progress.Update(2);
  EXPECT_EQ(LastShownLine(out_.str()), "epoch 1 [=======>      ]  50% 0:01 left");
}

TEST_F(ProgressTest, LinesStayAboveTheBarAndTheBarGoes) {
  Progress progress(out_, kPlainTerminal, Options(2));
  progress.Update(1);
  progress.Print("Loss: 1.5");
  EXPECT_NE(out_.str().find("\r\033[K\rLoss: 1.5\n\r\033[Kepoch 1 ["), std::string::npos);
  progress.Finish();
  EXPECT_EQ(LastShownLine(out_.str()), "");
  const std::string before = out_.str();
  progress.Update(2);
  EXPECT_EQ(out_.str(), before);
  progress.Print("after");
  EXPECT_EQ(out_.str(), before + "after\n");
}

TEST_F(ProgressTest, FileGetsTenPlainLines) {
  {
    Progress progress(out_, kFile, Options(75));
    for (int i = 1; i <= 75; ++i) {
      now_seconds_ += 2;
      progress.Update(i);
    }
  }
  const std::string text = out_.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_EQ(text.find("epoch 1: 10% (8 of 75), 2:14 left\n"), 0u);
  EXPECT_NE(text.find("epoch 1: 100% (75 of 75), 0:00 left\n"), std::string::npos);
}

TEST_F(ProgressTest, TimeGoesOnBetweenUpdates) {
  Progress progress(out_, kPlainTerminal, Options(4));
  now_seconds_ += 5;
  progress.Redraw();
  EXPECT_NE(LastShownLine(out_.str()).find("  0% 0:05 so far"), std::string::npos);
  now_seconds_ += 5;
  progress.Update(1);  // 10 s for a quarter
  now_seconds_ += 12;
  progress.Redraw();
  EXPECT_NE(LastShownLine(out_.str()).find(" 25% 0:18 left"), std::string::npos);
  now_seconds_ += 60;
  progress.Redraw();
  EXPECT_NE(LastShownLine(out_.str()).find(" 25% 0:00 left"), std::string::npos);
}

TEST_F(ProgressTest, WhatWasDoneBeforeTakesNoTime) {
  ProgressOptions options = Options(100);
  options.done = 80;
  Progress progress(out_, kPlainTerminal, options);
  now_seconds_ += 10;
  progress.Update(90);
  EXPECT_NE(LastShownLine(out_.str()).find(" 90% 0:10 left"), std::string::npos);
}

TEST_F(ProgressTest, UnknownTotalShowsTheTimeSoFar) {
  ProgressOptions options = Options(0);
  options.draw_after_seconds = 1;
  Progress progress(out_, kPlainTerminal, options);
  now_seconds_ += 0.9;
  progress.Redraw();
  EXPECT_EQ(out_.str(), "");
  now_seconds_ += 71;
  progress.Redraw();
  EXPECT_EQ(LastShownLine(out_.str()), "epoch 1 1:12");
  Progress file(out_, kFile, options);
  const std::string before = out_.str();
  now_seconds_ += 71;
  file.Redraw();
  file.Update(1);
  EXPECT_EQ(out_.str(), before);
}

TEST_F(ProgressTest, PlainLinesKeepTheirDistance) {
  ProgressOptions options = Options(100);
  options.plain_seconds = 10;
  Progress progress(out_, kFile, options);
  for (int i = 1; i <= 100; ++i) {
    now_seconds_ += 0.3;  // a tenth in 3 s
    progress.Update(i);
  }
  EXPECT_EQ(out_.str(), "epoch 1: 40% (40 of 100), 0:18 left\nepoch 1: 80% (80 of 100), 0:06 left\n");
}

TEST_F(ProgressTest, FileMayStaySilent) {
  ProgressOptions options = Options(75);
  options.plain_lines = 0;
  Progress progress(out_, kFile, options);
  for (int i = 1; i <= 75; ++i) progress.Update(i);
  EXPECT_EQ(out_.str(), "");
}

TEST_F(ProgressTest, ColourOnlyWhereAsked) {
  Progress plain(out_, kPlainTerminal, Options(2));
  plain.Update(1);
  EXPECT_EQ(out_.str().find("\033[36m"), std::string::npos);
  Progress coloured(out_, {.interactive = true, .colour = true, .columns = 80}, Options(2));
  coloured.Update(1);
  EXPECT_NE(out_.str().find("\033[36m"), std::string::npos);
}

TEST(ClockTimeTest, Forms) {
  EXPECT_EQ(ClockTime(0), "0:00");
  EXPECT_EQ(ClockTime(59.6), "1:00");
  EXPECT_EQ(ClockTime(3599.4), "59:59");
  EXPECT_EQ(ClockTime(11100), "3:05:00");
  EXPECT_EQ(ClockTime(-1), "-:--");
  EXPECT_EQ(ClockTime(1e12), "-:--");
}

class TerminalTest : public testing::Test {
 protected:
  // A pseudo-terminal: what programs see as a real one.
  void SetUp() override {
    controller_ = posix_openpt(2 /* O_RDWR */);
    ASSERT_GE(controller_, 0);
    ASSERT_EQ(grantpt(controller_), 0);
    ASSERT_EQ(unlockpt(controller_), 0);
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    setenv("COLUMNS", "57", 1);
  }
  void TearDown() override { close(controller_); }

  int controller_ = -1;
};

TEST_F(TerminalTest, ColoursFollowNoColorAndTerm) {
  EXPECT_TRUE(DetectTerminal(controller_).interactive);
  EXPECT_TRUE(DetectTerminal(controller_).colour);
  setenv("NO_COLOR", "1", 1);
  EXPECT_TRUE(DetectTerminal(controller_).interactive);
  EXPECT_FALSE(DetectTerminal(controller_).colour);
  setenv("NO_COLOR", "", 1);
  EXPECT_TRUE(DetectTerminal(controller_).colour);
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(DetectTerminal(controller_).interactive);
  EXPECT_FALSE(DetectTerminal(controller_).colour);
}

TEST_F(TerminalTest, RanksHaveTheTerminalOfTheirStarter) {
  setenv("TERM", "xterm", 1);
  setenv("OMPI_COMM_WORLD_RANK", "0", 1);
  EXPECT_FALSE(DetectTerminal(controller_).interactive);  // the launcher's pseudo-terminal
  setenv("PLAIT_TERMINAL", "0,91", 1);
  EXPECT_FALSE(DetectTerminal(1).interactive);
  EXPECT_TRUE(DetectTerminal(2).interactive);
  EXPECT_EQ(DetectTerminal(2).columns, 91);
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(DetectTerminal(2).colour);
  unsetenv("OMPI_COMM_WORLD_RANK");
  TellRanksOfTerminal();  // a rank that starts others passes on what it was told
  EXPECT_STREQ(std::getenv("PLAIT_TERMINAL"), "0,91");
  unsetenv("PLAIT_TERMINAL");
}

TEST_F(TerminalTest, PipeIsPlain) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Terminal terminal = DetectTerminal(ends[1]);
  EXPECT_FALSE(terminal.interactive);
  EXPECT_FALSE(terminal.colour);
  EXPECT_EQ(terminal.columns, 57);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace plait::base
