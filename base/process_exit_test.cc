#include "base/process_exit.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>

namespace plait::base {
namespace {

// Ends the process as a program that prints `bytes` letters to `path`.
[[noreturn]] void PrintTo(const char* path, int bytes, int exit_code) {
  PrepareExit("tool");
  if (std::freopen(path, "w", stdout) == nullptr) std::exit(99);
  for (int i = 0; i < bytes; ++i) std::fputc('a', stdout);
  std::exit(exit_code);
}

constexpr int kMoreThanABuffer = 1 << 20;
constexpr char kCut[] = "^tool: standard output cannot be written(: No space left on device)?\n$";

TEST(StandardOutput, ThatIsCutIsAnError) {
  EXPECT_EXIT(PrintTo("/dev/full", 1, 0), testing::ExitedWithCode(1), kCut);
  EXPECT_EXIT(PrintTo("/dev/full", kMoreThanABuffer, 0), testing::ExitedWithCode(1), kCut);
}

TEST(StandardOutput, OfAnotherErrorOrWithoutTextChangesNothing) {
  EXPECT_EXIT(PrintTo("/dev/full", 1, 2), testing::ExitedWithCode(2), "^$");
  EXPECT_EXIT(PrintTo("/dev/full", 0, 0), testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(PrintTo("/dev/null", kMoreThanABuffer, 0), testing::ExitedWithCode(0), "^$");
}

// The disk had no room in between only.
TEST(StandardOutput, AnEarlierErrorCounts) {
  const auto print = [] {
    PrepareExit("tool");
    if (std::freopen("/dev/full", "w", stdout) == nullptr) std::exit(99);
    std::puts("lost");
    std::fflush(stdout);
    const int other = fileno(std::fopen("/dev/null", "w"));
    dup2(other, fileno(stdout));
    std::puts("written");
    std::exit(0);
  };
  EXPECT_EXIT(print(), testing::ExitedWithCode(1), kCut);
}

TEST(StandardOutput, AClosedPipeIsQuiet) {
  const auto print = [](bool ignores_signal) {
    if (ignores_signal) std::signal(SIGPIPE, SIG_IGN);
    PrepareExit("tool");
    int ends[2];
    if (pipe(ends) != 0) std::exit(99);
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    std::puts("nobody reads this");
    std::exit(0);
  };
  EXPECT_EXIT(print(true), testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(print(false), testing::KilledBySignal(SIGPIPE), "^$");
}

TEST(StandardOutput, ThatIsClosedIsAnErrorAndNoOtherFile) {
  const auto print = [] {
    close(STDOUT_FILENO);
    PrepareExit("tool");
    if (fileno(std::fopen("/dev/null", "w")) == STDOUT_FILENO) std::exit(99);
    std::puts("lost");
    std::exit(0);
  };
  EXPECT_EXIT(print(), testing::ExitedWithCode(1),
              "^tool: standard output cannot be written: Bad file descriptor\n$");
}

struct SaysItsEnd {
  ~SaysItsEnd() { std::fputs("destroyed ", stderr); }
};

TEST(PrepareExit, EndsBeforeStaticDestructorsAndFlushesStreams) {
  const auto run = [] {
    static const SaysItsEnd before;
    PrepareExit("tool");
    static const SaysItsEnd later;
    std::atexit([] { std::fputs("registered later, ", stderr); });
    std::FILE* const file = fdopen(dup(STDERR_FILENO), "w");
    std::fputs("buffered", file);  // not flushed
    std::exit(3);
  };
  const char* const expected = kExitRunsStaticDestructors ? "^registered later, destroyed destroyed buffered$"
                                                          : "^registered later, destroyed buffered$";
  EXPECT_EXIT(run(), testing::ExitedWithCode(3), expected);
}

TEST(RunTool, ReturnsTheExitCode) {
  EXPECT_EQ(RunTool("tool", [] { return 3; }), 3);
}

TEST(RunTool, AnExceptionIsALineBehindTheOutput) {
  const auto run = [](absl::FunctionRef<int()> body) {
    dup2(STDERR_FILENO, STDOUT_FILENO);
    std::exit(RunTool("tool", [&] {
      std::fputs("output, ", stdout);
      return body();
    }));
  };
  EXPECT_EXIT(run([]() -> int { throw std::bad_alloc(); }), testing::ExitedWithCode(1),
              "^output, tool: out of memory \\(std::bad_alloc\\); [^\n]*\n$");
  EXPECT_EXIT(run([]() -> int { throw std::runtime_error("the reason\nframe #0\n"); }),
              testing::ExitedWithCode(1), "^output, tool: the reason\n$");
}

}  // namespace
}  // namespace plait::base
