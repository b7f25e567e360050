#include "comm/launch/supervision/job_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

namespace plait::comm {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::MatchesRegex;

class JobOutputTest : public testing::Test {
 protected:
  JobOutputTest() {
    PCHECK(pipe(output_));
    PCHECK(pipe(error_));
  }
  ~JobOutputTest() override {
    for (const int file : {output_[0], output_[1], error_[0], error_[1]}) close(file);
  }
  static void PCHECK(int code) { ASSERT_EQ(code, 0); }

  JobOutputOptions Options(int ranks, bool label = false) const {
    return {.ranks = ranks, .label = label, .output = output_[1], .error = error_[1]};
  }
  // What has come by now.
  static std::string Read(const int (&pipe)[2]) {
    char buffer[4096] = "";
    [[maybe_unused]] const ssize_t ended = write(pipe[1], "#", 1);
    const ssize_t got = read(pipe[0], buffer, sizeof buffer);
    return std::string(buffer, static_cast<std::size_t>(got - 1));
  }

  int output_[2];
  int error_[2];
};

class JobLogsTest : public JobOutputTest {
 protected:
  JobLogsTest()
      : folder_(fs::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    options_ = Options(2);
    options_.log_folder = folder_.string();
  }
  std::string TextOf(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const fs::path folder_;
  JobOutputOptions options_;
};

TEST_F(JobLogsTest, AreOfOneJobAtATime) {
  {
    JobOutput first(options_);
    ASSERT_TRUE(first.OpenLogs().ok());
    first.Write(1, Stream::kOutput, "of a rank\n");
    first.Write(kLauncherItself, Stream::kError, "of the launcher\n");
    JobOutput second(options_);
    const absl::Status refused = second.OpenLogs();
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(refused.message(),
              "--log-dir=" + options_.log_folder + ": in use by another launch; choose another folder");
    EXPECT_EQ(TextOf("rank-0001.log"), "of a rank\n");
    EXPECT_EQ(TextOf("launcher.log"), "of the launcher\n");
  }
  JobOutput later(options_);
  EXPECT_TRUE(later.OpenLogs().ok());
  EXPECT_EQ(TextOf("rank-0001.log"), "");
}

TEST_F(JobLogsTest, AreDeletedAndNothingElse) {
  const char* const of_user[] = {"rank-notes.log", "rank-007.log", "rank-.log", "rank-0007.log.old",
                                 "rank-0007a.log"};
  for (const char* name : of_user) std::ofstream(folder_ / name) << "text";
  for (const char* name : {"rank-0007.log", "rank-12345.log"}) std::ofstream(folder_ / name) << "text";
  JobOutput output(options_);
  ASSERT_TRUE(output.OpenLogs().ok());
  for (const char* name : of_user) EXPECT_EQ(TextOf(name), "text") << name;
  for (const char* name : {"rank-0007.log", "rank-12345.log"})
    EXPECT_FALSE(fs::exists(folder_ / name)) << name;
}

TEST_F(JobOutputTest, LinesOfRanksAreNotMixed) {
  JobOutput output(Options(2));
  output.Write(0, Stream::kOutput, "first half, ");
  output.Write(1, Stream::kOutput, "other\nrest of 1");
  output.Write(0, Stream::kError, "error\n");
  EXPECT_EQ(Read(output_), "other\n");
  EXPECT_EQ(Read(error_), "error\n");
  output.Write(0, Stream::kOutput, "second half\n");
  EXPECT_EQ(Read(output_), "first half, second half\n");
  output.Flush();
  EXPECT_EQ(Read(output_), "rest of 1\n");
}

TEST_F(JobOutputTest, ProgressIsSeenAtItsCarriageReturn) {
  JobOutput output(Options(1));
  output.Write(0, Stream::kError, "\r 10 %");
  output.Write(0, Stream::kError, "\r 20 %");
  EXPECT_EQ(Read(error_), "\r 10 %\r");
  output.Write(0, Stream::kError, "\r\nend\r\n");
  EXPECT_EQ(Read(error_), " 20 %\r\nend\r\n");
}

// Nothing waits for a reader who has stopped, and he gets everything when he goes on.
TEST_F(JobOutputTest, KeepsWhatAReaderDoesNotTake) {
  JobOutput output(Options(1));
  const std::string line(1023, 'x');
  std::string written, got;
  for (int i = 0; i < 1500; ++i) {
    output.Write(0, Stream::kOutput, line + "\n");
    written += line + "\n";
  }
  EXPECT_TRUE(output.waits());
  EXPECT_TRUE(output.is_full());
  output.Say("error");
  EXPECT_EQ(Read(error_), "error\n");
  while (got.size() < written.size()) {
    char buffer[4096];
    got.append(buffer, static_cast<std::size_t>(read(output_[0], buffer, sizeof buffer)));
    output.WriteWaiting();
  }
  EXPECT_FALSE(output.waits());
  EXPECT_TRUE(got == written);
}

TEST_F(JobOutputTest, DropsWhatNobodyTakesOnceAJobIsEnded) {
  JobOutput output(Options(1));
  output.DropTheRest();
  const std::string line(1023, 'x');
  for (int i = 0; i < 1500; ++i) output.Write(0, Stream::kOutput, line + "\n");
  EXPECT_TRUE(output.waits());
  EXPECT_FALSE(output.is_full());
  output.Finish(/*seconds=*/0, /*interrupt=*/-1);
  EXPECT_TRUE(output.waits());
}

TEST_F(JobOutputTest, WithoutAReaderOfErrorsTheOutputGoesOn) {
  JobOutput output({.ranks = 1, .output = output_[1], .error = 999});
  output.Say("error");
  output.Write(0, Stream::kOutput, "out\n");
  EXPECT_FALSE(output.user_left());
  EXPECT_FALSE(output.waits());
  EXPECT_EQ(output.problem(), "");
  EXPECT_EQ(Read(output_), "out\n");
}

TEST_F(JobOutputTest, AClosedFileIsAnErrorOnceItIsNeeded) {
  JobOutput output({.ranks = 1, .output = 999, .error = error_[1]});
  output.Say("error");
  EXPECT_FALSE(output.user_left());
  output.Write(0, Stream::kOutput, "out\n");
  EXPECT_TRUE(output.user_left());
}

TEST_F(JobOutputTest, LabelsAsWideAsTheHighestRank) {
  JobOutput output(Options(11, /*label=*/true));
  output.Write(3, Stream::kOutput, "a\n\nb\n");
  output.Write(10, Stream::kOutput, "c\n");
  output.Write(kLauncherItself, Stream::kOutput, "launcher\n");
  EXPECT_EQ(Read(output_), "[ 3] a\n[ 3] \n[ 3] b\n[10] c\nlauncher\n");
}

TEST_F(JobOutputTest, RemembersTheLastLinesOfEachRank) {
  JobOutput output(Options(2));
  for (int i = 0; i < 25; ++i)
    output.Write(1, i % 2 ? Stream::kOutput : Stream::kError, std::to_string(i) + "\n\n");
  output.Write(0, Stream::kOutput, "other\nunfinished");
  output.Flush();
  EXPECT_THAT(output.LastLines(1), ElementsAre("15", "16", "17", "18", "19", "20", "21", "22", "23", "24"));
  EXPECT_THAT(output.LastLines(0), ElementsAre("other", "unfinished"));
  EXPECT_THAT(output.LastLines(7), ElementsAre());
}

TEST_F(JobOutputTest, ErrorsOfOthersSpeakForASilentRank) {
  JobOutput output(Options(3));
  output.Write(0, Stream::kError, "why\n");
  output.Write(1, Stream::kOutput, "step 1\n");
  output.Write(kLauncherItself, Stream::kError, "noise\n");
  EXPECT_THAT(output.LastErrorsOfOthers(1), ElementsAre("[0] why"));
  EXPECT_THAT(output.LastErrorsOfOthers(0), ElementsAre());
  output.Write(1, Stream::kError, "own reason\n");
  EXPECT_THAT(output.LastErrorsOfOthers(1), ElementsAre());
}

TEST_F(JobOutputTest, LastWriters) {
  JobOutput output(Options(9));
  EXPECT_EQ(output.LastWriters(), "nothing from any rank");
  EXPECT_EQ(output.last_write(), 0);
  for (const int rank : {4, 0, 2, 6, 1, 5}) {
    usleep(2000);
    output.Write(rank, Stream::kOutput, "x");
  }
  EXPECT_THAT(output.LastWriters(),
              MatchesRegex(
                  "rank 5 at [0-9:]+ \\([0-9.]+ s ago\\), rank 1 at .*, rank 6 at .*, rank 2 at .*, 2 others "
                  "before; nothing from rank 3, 7, 8"));
}

TEST_F(JobOutputTest, NobodyReads) {
  JobOutput output({.ranks = 1, .output = 987, .error = 987});
  output.Write(0, Stream::kOutput, "x\n");
  EXPECT_TRUE(output.user_left());
  EXPECT_EQ(output.problem(), "Bad file descriptor");
}

TEST_F(JobOutputTest, AReaderThatGoesAwayIsNoProblem) {
  signal(SIGPIPE, SIG_IGN);
  JobOutput output(Options(1));
  close(std::exchange(output_[0], -1));
  output.Write(0, Stream::kOutput, "x\n");
  EXPECT_TRUE(output.user_left());
  EXPECT_EQ(output.problem(), "");
}

}  // namespace
}  // namespace plait::comm
