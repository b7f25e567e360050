#include "comm/launch/supervision/process_tree.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace plait::comm {
namespace {

TEST(StartProcess, NamesAProgramThatDoesNotExist) {
  const absl::Status status = StartProcess({"/nonexistent/x"}, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "cannot start /nonexistent/x: No such file or directory");
}

TEST(StartProcess, OtherFailuresAreNoMissingPrograms) {
  const absl::Status status = StartProcess({"/"}, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "cannot start /: Permission denied");
}

// As a user who has more processes than allowed; root may always have more.
[[noreturn]] void StartWithoutRoom() {
  const rlimit none = {.rlim_cur = 0, .rlim_max = 0};
  constexpr uid_t kNobody = 65534;
  if (setrlimit(RLIMIT_NPROC, &none) != 0 || (getuid() == 0 && setuid(kNobody) != 0)) std::_Exit(99);
  const absl::Status status = StartProcess({"true"}, {}).status();
  std::fprintf(stderr, "%s", std::string(status.message()).c_str());
  std::_Exit(static_cast<int>(status.code()));
}

TEST(StartProcess, WithoutRoomForAnotherProcess) {
  EXPECT_EXIT(StartWithoutRoom(),
              testing::ExitedWithCode(static_cast<int>(absl::StatusCode::kResourceExhausted)),
              "^cannot start a process for true: Resource temporarily unavailable$");
}

// nohup and shells' background jobs ignore signals, which then must not end a job.
TEST(HandledSignals, WithoutIgnoredOnes) {
  sigset_t set = HandledSignals({SIGINT, SIGHUP, SIGTERM});
  for (const int signal : {SIGCHLD, SIGINT, SIGHUP, SIGTERM}) EXPECT_EQ(sigismember(&set, signal), 1);
  signal(SIGHUP, SIG_IGN);
  set = HandledSignals({SIGINT, SIGHUP, SIGTERM});
  signal(SIGHUP, SIG_DFL);
  EXPECT_EQ(sigismember(&set, SIGHUP), 0);
  EXPECT_EQ(sigismember(&set, SIGINT), 1);
}

}  // namespace
}  // namespace plait::comm
