#include "comm/launch/supervision/launcher_notes.h"

#include <gtest/gtest.h>

#include <string>

namespace plait::comm {
namespace {

const std::string kRule = std::string(74, '-') + "\n";
// As Open MPI 4.1.4 writes them.
const std::string kPrimary = kRule +
                             "Primary job  terminated normally, but 1 process returned\n"
                             "a non-zero exit code. Per user-direction, the job has been aborted.\n" +
                             kRule;
const std::string kExited =
    kRule +
    "mpirun detected that one or more processes exited with non-zero status, thus causing\n"
    "the job to be terminated. The first process to do so was:\n\n"
    "  Process name: [[15733,1],1]\n  Exit code:    1\n" +
    kRule;
const std::string kKilled =
    kRule + "mpirun noticed that process rank 1 with PID 0 on node vm exited on signal 9 (Killed).\n" + kRule;
const std::string kHint =
    kRule + "[[123,1],0]: A high-performance Open MPI point-to-point messaging module\n" + kRule;

// In pieces of `size` bytes.
std::string Passed(LauncherNotes& notes, const std::string& text, std::size_t size) {
  std::string passed;
  for (std::size_t at = 0; at < text.size(); at += size) passed += notes.Pass(text.substr(at, size));
  return passed + notes.Rest();
}

TEST(LauncherNotes, TakesTheEndsOfJobsOutAndNothingElse) {
  const std::string own =
      "train: missing.txt: cannot be read\n-v\n" + kRule + kRule + kHint + "no newline at the end";
  for (const std::size_t size : {1, 7, 74, 75, 4096}) {
    LauncherNotes notes;
    EXPECT_EQ(Passed(notes, kPrimary + "rank 0 says\n" + kExited + own, size), "rank 0 says\n" + own) << size;
    EXPECT_EQ(notes.killed_rank(), "");
  }
}

TEST(LauncherNotes, RemembersWhoWasKilled) {
  for (const std::size_t size : {1, 75, 4096}) {
    LauncherNotes notes;
    EXPECT_EQ(Passed(notes, kKilled + kExited, size), "");
    EXPECT_EQ(notes.killed_rank(), "rank 1 exited on signal 9 (Killed)");
  }
}

TEST(LauncherNotes, BeginningsOfLinesPassAtOnce) {
  LauncherNotes notes;
  EXPECT_EQ(notes.Pass("\r 50%"), "\r 50%");
  EXPECT_EQ(notes.Pass("\r 51%\r"), "\r 51%\r");
  EXPECT_EQ(notes.Pass("\n--"), "\n");
  EXPECT_EQ(notes.Pass("x\n"), "--x\n");
}

}  // namespace
}  // namespace plait::comm
