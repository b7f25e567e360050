// Bars on a pseudo-terminal, while the program is busy without updating them.
#include "tools/training/console.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace plait::training {
namespace {

// Makes standard output a terminal while it lives.
class TerminalOutput {
 public:
  TerminalOutput() : before_(dup(STDOUT_FILENO)) {
    setenv("TERM", "xterm", 1);
    winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
    int end = -1;
    EXPECT_EQ(openpty(&ours_, &end, nullptr, nullptr, &size), 0);
    dup2(end, STDOUT_FILENO);
    close(end);
  }
  TerminalOutput(const TerminalOutput&) = delete;
  TerminalOutput& operator=(const TerminalOutput&) = delete;
  ~TerminalOutput() {
    dup2(before_, STDOUT_FILENO);
    close(before_);
    close(ours_);
  }

  // Output from now on, up to and including `text`; the output of half a minute if `text` does not appear.
  std::string Until(const std::string& text) {
    std::string seen;
    for (pollfd file{.fd = ours_, .events = POLLIN, .revents = 0}; seen.find(text) == seen.npos;) {
      char some[4096];
      if (poll(&file, 1, 30'000) <= 0) break;
      const ssize_t got = read(ours_, some, sizeof some);
      if (got <= 0) break;
      seen.append(some, static_cast<std::size_t>(got));
    }
    return seen;
  }

 private:
  int before_, ours_ = -1;
};

using ::testing::EndsWith, ::testing::HasSubstr, ::testing::Not;

TEST(Console, ABarStandsWhileTheProgramIsBusyAndComesBackBehindAnother) {
  std::string alone, above, printed, below, again, end;
  {
    TerminalOutput output;
    Console console(/*prints=*/true);
    console.StartBar("checkpoint");
    alone = output.Until("checkpoint 0:0");
    console.StartBar("validation loss", 20);
    console.Update(5);
    above = output.Until("25%");
    console.Print("a line");
    printed = output.Until("a line\r\n");
    below = output.Until("25%");
    console.StopBar();
    again = output.Until("checkpoint 0:0");
    console.StopBar();
    console.Print("the end");
    end = output.Until("the end\r\n");
  }
  EXPECT_THAT(alone, HasSubstr("checkpoint 0:0"));
  EXPECT_THAT(above, HasSubstr("validation loss ["));
  EXPECT_THAT(printed, HasSubstr("\x1b[K\ra line\r\n")) << "in place of the bar";
  EXPECT_THAT(below, HasSubstr("validation loss ["));
  EXPECT_THAT(again, HasSubstr("checkpoint 0:0"));
  EXPECT_THAT(end, EndsWith("\x1b[K\rthe end\r\n"));
  EXPECT_THAT(end, Not(HasSubstr("validation")));
}

TEST(Console, OtherRanksAreSilent) {
  std::string all;
  {
    TerminalOutput output;
    Console(/*prints=*/false).Print("of rank 1");
    Console first(/*prints=*/true);
    first.Print("of rank 0");
    all = output.Until("of rank 0\r\n");
  }
  EXPECT_EQ(all, "of rank 0\r\n");
}

}  // namespace
}  // namespace plait::training
