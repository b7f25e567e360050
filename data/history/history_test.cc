#include "data/history/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5_hl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>

#include "data/hdf5/atomic_file.h"
#include "data/hdf5/file.h"
#include "data/history/history_file.h"
#include "data/history/history_table.h"

namespace plait::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;
namespace fs = std::filesystem;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
// Never on its own: the tests commit where they mean to.
constexpr double kNever = 1e6;

std::string NewPath(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name;
  for (const char* suffix : {"", ".journal", ".1", ".2"}) fs::remove(path + suffix);
  return path;
}

std::unique_ptr<History> Started(const std::string& path) {
  absl::StatusOr<std::unique_ptr<History>> history =
      History::Create(path, {.attributes = {{"seed", "12"}}, .commit_seconds = kNever});
  EXPECT_TRUE(history.ok()) << history.status();
  return *std::move(history);
}

std::vector<double> Column(const std::string& path, const std::string& name) {
  return *ReadArray<double>(*OpenHistoryFile(path), "/" + name);
}

std::vector<std::int64_t> Draws(const std::string& path) {
  return *ReadArray<std::int64_t>(*OpenHistoryFile(path), "/draw");
}

TEST(History, KeepsWhatWasAppendedNaNsInfinitiesAndLateMetrics) {
  const std::string path = NewPath("kept.h5");
  auto history = Started(path);
  ASSERT_TRUE(history->Declare({"dt", "s", "time per batch"}).ok());
  ASSERT_TRUE(history->Append({{"loss", 2.5}, {"dt", 0.1}}).ok());
  ASSERT_TRUE(history->Append({{"loss", kNaN}, {"dt", -kInf}}).ok());
  ASSERT_TRUE(history->Commit().ok());
  ASSERT_TRUE(history->Append({{"accuracy", 0.5}, {"loss", 1.5}}).ok());
  ASSERT_TRUE(history->Append({}).ok());
  ASSERT_TRUE(history->Append({{"late.too", 7}}).ok());
  EXPECT_EQ(history->draws(), 5);
  ASSERT_TRUE(history->Close().ok());
  EXPECT_THAT(Draws(path), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(Column(path, "loss"), ElementsAre(2.5, IsNan(), 1.5, IsNan(), IsNan()));
  EXPECT_THAT(Column(path, "dt"), ElementsAre(0.1, -kInf, IsNan(), IsNan(), IsNan()));
  EXPECT_THAT(Column(path, "accuracy"), ElementsAre(IsNan(), IsNan(), 0.5, IsNan(), IsNan()));
  EXPECT_THAT(Column(path, "late.too"), ElementsAre(IsNan(), IsNan(), IsNan(), IsNan(), 7));
  EXPECT_FALSE(fs::exists(path + ".journal"));
}

// Whole numbers are int64 in the file; what a draw lacks is netCDF's fill value, named only where it occurs.
TEST(History, IntegersAreIntegersInTheFile) {
  const std::string path = NewPath("integers.h5");
  const auto integers = [&](const std::string& name) {
    return *ReadArray<std::int64_t>(*OpenHistoryFile(path), name);
  };
  constexpr std::int64_t kFill = -9223372036854775806;
  auto history = Started(path);
  ASSERT_TRUE(history->Declare(Count("step", "steps done")).ok());
  ASSERT_TRUE(history->Declare(Count("level", "of the hierarchy")).ok());
  Metric counts = Count("rows", "of experts");
  counts.length = 2;
  ASSERT_TRUE(history->Declare(counts).ok());
  ASSERT_TRUE(history->Append({{"step", 1}, {"loss", 0.5}}, {{"rows", {3, kNaN}}}).ok());
  ASSERT_TRUE(history->Commit().ok());
  ASSERT_TRUE(history->Append({{"step", 9007199254740991.0}, {"level", 4}}, {{"rows", {-1, 0}}}).ok());
  ASSERT_TRUE(history->Commit().ok());
  for (const double bad : {1.5, kInf, 1e17}) {
    const absl::Status refused = history->Append({{"step", bad}});
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("step is "));
  }
  ASSERT_TRUE(history->Append({{"step", 3}, {"level", kNaN}}).ok());
  ASSERT_TRUE(history->Close().ok());
  EXPECT_THAT(integers("/step"), ElementsAre(1, 9007199254740991, 3));
  EXPECT_THAT(integers("/level"), ElementsAre(kFill, 4, kFill));
  EXPECT_THAT(integers("/rows"), ElementsAre(3, kFill, -1, 0, kFill, kFill));
  const HistoryTable table = *HistoryTable::Open(path);
  EXPECT_THAT(*table.Column("level"), ElementsAre(IsNan(), 4, IsNan()));
  EXPECT_THAT(*table.Rows("rows", 0, 2), ElementsAre(3, IsNan(), -1, 0));
  {
    const File file = *File::Open(path);
    EXPECT_FALSE(HasAttribute(file, "/step", "_FillValue")) << "xarray would show floating-point numbers";
    EXPECT_TRUE(HasAttribute(file, "/level", "_FillValue"));
    EXPECT_TRUE(HasAttribute(file, "/rows", "_FillValue"));
  }
  // Resumed after lost draws, and with a new metric.
  auto resumed = *History::Resume(path, 4, {.commit_seconds = kNever});
  ASSERT_TRUE(resumed->Declare(Count("late", "from here on")).ok());
  ASSERT_TRUE(resumed->Append({{"step", 5}, {"late", 2}}).ok());
  EXPECT_FALSE(resumed->Append({{"step", 0.5}}).ok()) << "the file knows that it is an integer";
  EXPECT_THAT(*HistoryTable::Open(path)->Column("step"), ElementsAre(1, 9007199254740991, 3, IsNan(), 5))
      << "from the journal";
  ASSERT_TRUE(resumed->Close().ok());
  EXPECT_THAT(*HistoryTable::Open(path)->Column("step"), ElementsAre(1, 9007199254740991, 3, IsNan(), 5));
  EXPECT_THAT(integers("/late"), ElementsAre(kFill, kFill, kFill, kFill, 2));
  EXPECT_TRUE(HasAttribute(*File::Open(path), "/late", "_FillValue"));
}

// Files of format 2 have floating-point numbers everywhere, and keep them.
TEST(History, AFileWithoutIntegersIsGoneOnWith) {
  const std::string path = NewPath("format2.h5");
  auto history = Started(path);
  ASSERT_TRUE(history->Append({{"step", 1}}).ok());
  ASSERT_TRUE(history->Close().ok());
  {
    File file = *File::Open(path, File::Mode::kReadWrite);
    ASSERT_TRUE(SetAttribute(file, "/", "format_version", std::int64_t{2}).ok());
  }
  auto resumed = *History::Resume(path, 1, {.commit_seconds = kNever});
  ASSERT_TRUE(resumed->Declare(Count("step", "steps done")).ok());
  ASSERT_TRUE(resumed->Append({{"step", 2}}).ok());
  ASSERT_TRUE(resumed->Append({}).ok());
  ASSERT_TRUE(resumed->Close().ok());
  EXPECT_THAT(Column(path, "step"), ElementsAre(1, 2, IsNan()));
}

// What netCDF-4 readers look for: `draw` is a dimension scale named draw, of unlimited length, and every
// variable is attached to it in its only dimension.
TEST(History, IsLaidOutAsNetcdf4) {
  const std::string path = NewPath("netcdf.h5");
  auto history = Started(path);
  ASSERT_TRUE(history->Declare({"dt", "s", "time per batch"}).ok());
  ASSERT_TRUE(history->Append({{"dt", 1}, {"loss", 1}}).ok());
  ASSERT_TRUE(history->Close().ok());
  const File file = *File::Open(path);
  const Handle draw(H5Dopen2(file.id(), "/draw", H5P_DEFAULT));
  EXPECT_GT(H5DSis_scale(draw.id()), 0);
  char name[16] = "";
  H5DSget_scale_name(draw.id(), name, sizeof(name));
  EXPECT_STREQ(name, "draw");
  const Handle space(H5Dget_space(draw.id()));
  hsize_t extent = 0, limit = 0;
  H5Sget_simple_extent_dims(space.id(), &extent, &limit);
  EXPECT_EQ(extent, 1u);
  EXPECT_EQ(limit, H5S_UNLIMITED);
  for (const char* metric : {"/dt", "/loss"}) {
    const Handle variable(H5Dopen2(file.id(), metric, H5P_DEFAULT));
    EXPECT_GT(H5DSis_attached(variable.id(), draw.id(), 0), 0) << metric;
  }
  EXPECT_EQ(*TextAttribute(file, "/dt", "units"), "s");
  EXPECT_EQ(*TextAttribute(file, "/dt", "long_name"), "time per batch");
  EXPECT_EQ(*TextAttribute(file, "/", "seed"), "12");
  EXPECT_EQ(*IntAttribute(file, "/", "complete"), 1);
}

TEST(History, FileIsThereFromTheStartAndBetweenCommits) {
  const std::string path = NewPath("live.h5");
  auto history = Started(path);
  EXPECT_TRUE(Draws(path).empty());
  ASSERT_TRUE(history->Append({{"loss", 1}}).ok());
  ASSERT_TRUE(history->Commit().ok());
  ASSERT_TRUE(history->Append({{"loss", 2}}).ok());
  EXPECT_THAT(Column(path, "loss"), ElementsAre(1));
  history.reset();
  EXPECT_THAT(Column(path, "loss"), ElementsAre(1, 2)) << "going away commits";
  EXPECT_FALSE(HasAttribute(*File::Open(path), "/", "complete"));
  EXPECT_FALSE(fs::exists(path + ".journal"));
}

// What makes it safe against a kill at any moment: a file once written is never touched again, only replaced.
TEST(History, FileIsReplacedNeverChangedInPlace) {
  const std::string path = NewPath("replaced.h5");
  auto history = Started(path);
  for (int commit = 0; commit < 3; ++commit) {
    const std::string old = NewPath("replaced_old.h5");
    fs::create_hard_link(path, old);
    const std::string before = *ReadWholeFile(old);
    ASSERT_TRUE(history->Append({{"loss", 1.0}, {"late" + std::to_string(commit), 2.0}}).ok());
    ASSERT_TRUE((commit < 2 ? history->Commit() : history->Close()).ok());
    EXPECT_EQ(*ReadWholeFile(old), before);
    EXPECT_NE(*ReadWholeFile(path), before);
  }
}

TEST(History, NeverAppendsToAnOldRun) {
  const std::string path = NewPath("old.h5");
  auto history = Started(path);
  ASSERT_TRUE(history->Append({{"loss", 1}}).ok());
  EXPECT_EQ(History::Recover(path).code(), absl::StatusCode::kFailedPrecondition) << "it is being written";
  ASSERT_TRUE(history->Close().ok());
  const std::string before = *ReadWholeFile(path);
  const absl::Status refused = History::Create(path, {}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(refused.message()), HasSubstr(path + ": holds an earlier run"));
  EXPECT_EQ(*ReadWholeFile(path), before);
  auto second = *History::Create(path, {.move_old_aside = true});
  ASSERT_TRUE(second->Append({{"loss", 9}}).ok());
  ASSERT_TRUE(second->Close().ok());
  EXPECT_EQ(*ReadWholeFile(path + ".1"), before);
  EXPECT_THAT(Column(path, "loss"), ElementsAre(9));
}

TEST(History, ResumeCutsWhatTheCheckpointDoesNotKnow) {
  const std::string path = NewPath("resume.h5");
  auto history = Started(path);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(history->Append({{"loss", 1.0 * i}, {"dt", 1}}).ok());
  history.reset();
  auto resumed = *History::Resume(
      path, 4, {.attributes = {{"seed", "13"}, {"started", "2026-02-02"}}, .commit_seconds = kNever});
  EXPECT_EQ(resumed->draws(), 4);
  ASSERT_TRUE(resumed->Append({{"loss", 40}, {"new", 5}}).ok());
  ASSERT_TRUE(resumed->Close().ok());
  EXPECT_THAT(Column(path, "loss"), ElementsAre(0, 1, 2, 3, 40));
  EXPECT_THAT(Column(path, "dt"), ElementsAre(1, 1, 1, 1, IsNan()));
  EXPECT_THAT(Column(path, "new"), ElementsAre(IsNan(), IsNan(), IsNan(), IsNan(), 5));
  EXPECT_EQ(*IntAttribute(*File::Open(path), "/", "resumed_at_draw"), 4);
  EXPECT_EQ(*TextAttribute(*File::Open(path), "/", "seed"), "13");
  EXPECT_EQ(*TextAttribute(*File::Open(path), "/", "resumed_at_draws"), "4");
  EXPECT_EQ(*TextAttribute(*File::Open(path), "/", "started"), "2026-02-02") << "the file had none";
  auto longer = *History::Resume(path, 7, {.attributes = {{"started", "2026-03-03"}}});
  EXPECT_EQ(*TextAttribute(*File::Open(path), "/", "started"), "2026-02-02");
  EXPECT_EQ(*TextAttribute(*File::Open(path), "/", "resumed"), "2026-03-03");
  ASSERT_TRUE(longer->Append({{"loss", 70}}).ok());
  ASSERT_TRUE(longer->Close().ok());
  EXPECT_THAT(Column(path, "loss"), ElementsAre(0, 1, 2, 3, 40, IsNan(), IsNan(), 70));
  EXPECT_EQ(*TextAttribute(*File::Open(path), "/", "resumed_at_draws"), "4 7");
  ASSERT_TRUE((*History::Resume(path, 6, {}))->Close().ok());
  EXPECT_EQ(*TextAttribute(*File::Open(path), "/", "resumed_at_draws"), "4 6") << "draw 7 is gone";
  EXPECT_EQ(History::Resume(NewPath("none.h5"), 1, {}).status().code(), absl::StatusCode::kNotFound);
}

TEST(History, ManyDrawsCrossBlocksAndCommits) {
  const std::string path = NewPath("many.h5");
  auto history = Started(path);
  constexpr int kDraws = 10000;
  for (int i = 0; i < kDraws; ++i) {
    const std::vector<Scalar> scalars = {{"a", 1.0 * i}, {"b", -1.0 * i}};
    ASSERT_TRUE(history->Append(absl::MakeConstSpan(scalars).first(i % 3 == 0 ? 2 : 1)).ok());
    if (i == 4096 || i == 9000) {
      ASSERT_TRUE(history->Commit().ok());
    }
  }
  ASSERT_TRUE(history->Close().ok());
  const std::vector<double> a = Column(path, "a"), b = Column(path, "b");
  ASSERT_EQ(a.size(), std::size_t{kDraws});
  EXPECT_EQ(Draws(path).back(), kDraws - 1);
  for (int i = 0; i < kDraws; ++i) {
    ASSERT_EQ(a[i], i);
    ASSERT_TRUE(i % 3 == 0 ? b[i] == -i : std::isnan(b[i])) << i;
  }
}

TEST(History, BadNamesAreRefusedAndTheRunGoesOn) {
  auto history = Started(NewPath("names.h5"));
  for (const char* name : {"", "draw", "a/b", "1st", "a b"}) {
    const absl::Status status = history->Append({{name, 1}});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string("\"") + name + "\""));
  }
  EXPECT_EQ(history->draws(), 0);
  EXPECT_TRUE(history->Append({{"ok_1.x-y", 1}}).ok());
}

TEST(History, AMetricIsInADrawOnce) {
  const std::string path = NewPath("twice.h5");
  auto history = Started(path);
  EXPECT_THAT(std::string(history->Append({{"a", 1}, {"b", 2}, {"a", 3}}).message()),
              HasSubstr(": a is in one draw twice; expected once"));
  EXPECT_EQ(history->Append({}, {{"v", {1, 2}}, {"v", {3, 4}}}).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(history->Append({{"a", 4}, {"b", 5}}, {{"v", {6, 7}}}).ok());
  ASSERT_TRUE(history->Close().ok());
  EXPECT_THAT(Draws(path), ElementsAre(0));
  EXPECT_THAT(Column(path, "a"), ElementsAre(4));
}

TEST(History, ForeignNewerAndTruncatedFilesAreNamed) {
  const std::string path = NewPath("foreign.h5");
  std::ofstream(path) << "text";
  EXPECT_THAT(std::string(History::Resume(path, 0, {}).status().message()), HasSubstr("not an HDF5 file"));
  ASSERT_TRUE(File::Create(path)->Close().ok());
  EXPECT_THAT(std::string(History::Resume(path, 0, {}).status().message()), HasSubstr("not a history"));
  fs::remove(path);
  ASSERT_TRUE(Started(path)->Close().ok());
  {
    File file = *File::Open(path, File::Mode::kReadWrite);
    ASSERT_TRUE(SetAttribute(file, "/", "format_version", std::int64_t{9}).ok());
  }
  EXPECT_THAT(std::string(History::Resume(path, 0, {}).status().message()),
              HasSubstr("format 9, expected at most 3"));
}

// However many bytes of the journal reach the disk, the draws that are whole in it are recovered.
TEST(History, AJournalCutAnywhereGivesItsWholeDraws) {
  const std::string path = NewPath("cut.h5");
  std::string journal, file;
  {
    auto history = Started(path);
    file = *ReadWholeFile(path);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(history->Append({{"loss", 1.0 + i}}).ok());
    journal = *ReadWholeFile(path + ".journal");
    ASSERT_TRUE(history->Close().ok());
  }
  constexpr std::size_t kDrawRecord = 8 + 1 + 8 + 12;
  for (std::size_t length = 0; length <= journal.size(); ++length) {
    std::ofstream(path, std::ios::binary) << file;
    std::ofstream(path + ".journal", std::ios::binary) << journal.substr(0, length);
    ASSERT_TRUE(History::Recover(path).ok()) << length;
    const std::size_t lost = (journal.size() - length + kDrawRecord - 1) / kDrawRecord;
    ASSERT_EQ(Draws(path).size(), lost > 3 ? 0u : 3 - lost) << length;
  }
  journal[journal.size() - kDrawRecord - 1] ^= 1;
  std::ofstream(path, std::ios::binary) << file;
  std::ofstream(path + ".journal", std::ios::binary) << journal;
  ASSERT_TRUE(History::Recover(path).ok());
  EXPECT_EQ(Draws(path).size(), 1u) << "a damaged record ends the journal";
}

// The same limit as below, on a run that begins.
TEST(History, AFullDiskAtTheBeginningIsOneLineAndLeavesNothing) {
  const std::string path = NewPath("full_at_once.h5");
  signal(SIGXFSZ, SIG_IGN);
  for (const rlim_t bytes : {rlim_t{16}, rlim_t{500}}) {
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit limit{bytes, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    const absl::Status full = History::Create(path, {}).status();
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << bytes << ": " << full;
    EXPECT_THAT(std::string(full.message()), HasSubstr(path + " not written: "));
    EXPECT_FALSE(fs::exists(path) || fs::exists(path + ".journal"));
  }
  ASSERT_TRUE(History::Create(path, {}).ok());
}

// Wherever in the commit the disk is full: an error, after which the process can continue.
TEST(History, FullDiskAtACommit) {
  int errors = 0;
  for (rlim_t bytes = 6000; bytes < 24000; bytes += 1000) {
    const std::string path = NewPath("full_commit.h5");
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGXFSZ, SIG_IGN);
      absl::Status status;
      {
        auto history = *History::Create(path, {.commit_seconds = kNever});
        for (int i = 0; i < 30 && status.ok(); ++i)
          status = history->Append({{"loss", 1.0 * i}, {"lr", 0.5}});
        const rlimit limit{bytes, bytes};
        setrlimit(RLIMIT_FSIZE, &limit);
        if (status.ok()) status = history->Commit();
      }
      exit(status.ok() ? 0 : absl::IsResourceExhausted(status) ? 1 : 2);  // closes HDF5
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) <= 1) << bytes << ": " << status;
    errors += WEXITSTATUS(status);
    ASSERT_TRUE(History::Recover(path).ok());
    EXPECT_EQ(Draws(path).size(), 30U) << bytes;
  }
  EXPECT_GT(errors, 3);
}

// A limit on the size of files acts as a full disk. What was said to be taken is there afterwards, and the
// process can tell.
TEST(History, FullDiskIsReportedAndLosesNothingTaken) {
  const std::string path = NewPath("full.h5");
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{16384, 16384};
    auto history = *History::Create(path, {.commit_seconds = kNever});
    setrlimit(RLIMIT_FSIZE, &limit);
    absl::Status status;
    for (int i = 0; i < 5000 && status.ok(); ++i) status = history->Append({{"loss", 1.0 * i}});
    const std::int64_t taken = history->draws();
    // The limit (EFBIG) is ResourceExhausted, as a full disk (ENOSPC) is; from absl::ErrnoToStatus it is OutOfRange.
    const bool told = absl::IsOutOfRange(status) || absl::IsResourceExhausted(status);
    [[maybe_unused]] const ssize_t sent = write(pipe_ends[1], &taken, sizeof(taken));
    _exit(!status.ok() && told ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  std::int64_t taken = 0;
  ASSERT_EQ(read(pipe_ends[0], &taken, sizeof(taken)), static_cast<ssize_t>(sizeof(taken)));
  EXPECT_GT(taken, 100);
  ASSERT_TRUE(History::Recover(path).ok());
  EXPECT_EQ(static_cast<std::int64_t>(Draws(path).size()), taken);
}

}  // namespace
}  // namespace plait::data
