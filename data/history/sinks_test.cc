#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>

#include "data/hdf5/atomic_file.h"
#include "data/history/history.h"
#include "data/history/sinks.h"
#include "data/history/tensorboard_record.h"

namespace plait::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
namespace fs = std::filesystem;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNever = 1e6;

std::string NewPath(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name;
  for (const char* suffix : {"", ".journal", ".1"}) fs::remove_all(path + suffix);
  return path;
}

TEST(CsvSink, LateMetricsWidenTheTable) {
  const std::string path = NewPath("late.csv");
  auto history = *History::Create(NewPath("csv.h5"), {.commit_seconds = kNever});
  ASSERT_TRUE(history->Declare({"dt", "s, \"wall\""}).ok());
  history->AddSink(*MakeCsvSink(path));
  ASSERT_TRUE(history->Append({{"dt", 0.1}, {"loss", -kNaN}}).ok());
  EXPECT_EQ(*ReadWholeFile(path), "draw,dt,loss\n0,0.1,nan\n");
  ASSERT_TRUE(history->Append({{"loss", -kInf}}).ok());
  ASSERT_TRUE(history->Append({{"accuracy", 1.0 / 3}}, {{"v", {1.0, kInf}}}).ok());
  const std::string wide =
      "draw,dt,loss,accuracy,v[0],v[1]\n0,0.1,nan,,,\n1,,-inf,,,\n"
      "2,,,0.3333333333333333,1,inf\n";
  EXPECT_EQ(*ReadWholeFile(path), wide) << "at once, not only at the end";
  ASSERT_TRUE(history->Append({}).ok());
  ASSERT_TRUE(history->Close().ok());
  EXPECT_EQ(*ReadWholeFile(path), wide + "3,,,,,\n");
}

TEST(JsonLinesSink, KeepsWhatJsonHasNoNumbersFor) {
  const std::string path = NewPath("lines.jsonl");
  auto history = *History::Create(NewPath("jsonl.h5"), {.commit_seconds = kNever});
  history->AddSink(*MakeJsonLinesSink(path));
  ASSERT_TRUE(history->Append({{"loss", 1e-300}, {"dt", kNaN}}, {{"v", {1.5, -kInf}}}).ok());
  ASSERT_TRUE(history->Append({}).ok());
  EXPECT_EQ(*ReadWholeFile(path),
            "{\"draw\":0,\"loss\":1e-300,\"dt\":\"NaN\",\"v\":[1.5,\"-Infinity\"]}\n{\"draw\":1}\n");
  ASSERT_TRUE(history->Close().ok());
}

TEST(Sinks, NeverTouchAnOldRun) {
  for (const char* name : {"old.csv", "old.jsonl"}) {
    const std::string path = NewPath(name);
    std::ofstream(path) << "old";
    const auto create = [&](bool options) {
      return std::string(name) == "old.csv" ? MakeCsvSink(path, options).status()
                                            : MakeJsonLinesSink(path, options).status();
    };
    EXPECT_EQ(create(false).code(), absl::StatusCode::kAlreadyExists);
    EXPECT_EQ(*ReadWholeFile(path), "old");
    EXPECT_TRUE(create(true).ok());
    EXPECT_EQ(*ReadWholeFile(path + ".1"), "old");
  }
  const std::string folder = NewPath("old_tb");
  ASSERT_TRUE(MakeTensorboardSink(folder, {}).ok());
  EXPECT_EQ(MakeTensorboardSink(folder, {}).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(MakeTensorboardSink(folder, {.resume_draws = 2}).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 2);
  EXPECT_TRUE(MakeTensorboardSink(folder, {.move_old_aside = true}).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder + ".1"), {}), 2);
  EXPECT_EQ(MakeCsvSink(testing::TempDir() + "/no/folder/x.csv").status().code(),
            absl::StatusCode::kNotFound);
}

// The history continues without a sink that fails; Close returns the error.
TEST(Sinks, AFullDiskForASinkDoesNotDisturbTheHistory) {
  const std::string path = NewPath("full_sink.h5"), csv = NewPath("full_sink.csv");
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    auto history = *History::Create(path, {.commit_seconds = kNever});
    history->AddSink(*MakeCsvSink(csv));
    if (!history->Append({{"loss", 1}}, {{"v", std::vector<double>(400, 1.0 / 3)}}).ok()) _exit(1);
    // The row of numbers takes more as text than the journal's record does.
    const rlimit limit{20000, 20000};
    setrlimit(RLIMIT_FSIZE, &limit);
    for (int i = 0; i < 2; ++i) {
      if (!history->Append({{"loss", 1}}, {{"v", std::vector<double>(400, 1.0 / 3)}}).ok()) _exit(2);
    }
    const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &none);
    _exit(history->Close().ok() ? 3 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  const std::string text = *ReadWholeFile(csv);
  EXPECT_EQ(text.back(), '\n') << "whole rows only";
  EXPECT_LE(text.size(), 20000u);
}

TEST(TensorboardSink, LeavesNoFileIfItCannotBegin) {
  const std::string folder = NewPath("full_events");
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100, 100};
    setrlimit(RLIMIT_FSIZE, &limit);
    _exit(MakeTensorboardSink(folder, {.attributes = {{"host", std::string(200, 'h')}}}).ok() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::is_empty(folder));
}

// RFC 3720, appendix B.4, and the check value of the catalogue of CRCs.
TEST(TfRecord, HasTheChecksumsOfTheStandard) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  const std::string record = TfRecord("abc");
  EXPECT_EQ(record.size(), 8u + 4 + 3 + 4);
  EXPECT_EQ(record.substr(0, 8), std::string("\3\0\0\0\0\0\0\0", 8));
}

}  // namespace
}  // namespace plait::data
