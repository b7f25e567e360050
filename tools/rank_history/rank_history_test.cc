#include "tools/rank_history/rank_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include "comm/testing/world.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/file.h"
#include "data/history/history_file.h"

namespace plait::rank_history {
namespace {

using comm::testing::World;
using data::File;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsNan;
namespace fs = std::filesystem;

const std::vector<RankColumn>& Loss() {
  static const auto& columns = *new std::vector<RankColumn>{{{"loss"}, RankStatistics::kStatistics}};
  return columns;
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// One place for all ranks, and apart from the same test on other numbers of ranks.
std::string NewPath(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + std::to_string(World().size()) + "_" + name;
  if (World().rank() == 0) {
    for (const char* suffix : {"", ".journal", ".1"}) fs::remove_all(path + suffix);
  }
  World().Barrier();
  return path;
}

std::vector<double> Column(const std::string& path, const std::string& name) {
  return *data::ReadArray<double>(*data::OpenHistoryFile(path), "/" + name);
}

// Value of a rank in a step: ranks r = 0 ... n - 1 give step + r, so the mean is step + (n - 1) / 2 and the
// variance of the population (n^2 - 1) / 12.
TEST(RankHistory, WritesStatisticsOverRanks) {
  const std::string path = NewPath("statistics.h5");
  auto history = *RankHistory::Create(
      World(), {.path = path,
                .attributes = {{"seed", "1"}},
                .metrics = {{{"dt", "s", "time of a step"}, RankStatistics::kEachRank}, {{"iter"}}},
                .gather_every = 4});
  constexpr int kSteps = 11;
  for (int step = 0; step < kSteps; ++step) {
    ASSERT_TRUE(history->Append({{"iter", 1.0 * step}, {"dt", 1.0 * step + World().rank()}}).ok());
  }
  EXPECT_EQ(history->draws(), kSteps);
  ASSERT_TRUE(history->Close().ok());
  if (World().rank() != 0) return;
  const int n = World().size();
  const std::vector<double> mean = Column(path, "dt_mean"), low = Column(path, "dt_min"),
                            high = Column(path, "dt_max");
  const std::vector<double> deviation = Column(path, "dt_std"), of_ranks = Column(path, "dt_per_rank");
  const std::vector<double> iter = Column(path, "iter"), own = Column(path, "dt");
  ASSERT_EQ(mean.size(), std::size_t{kSteps});
  ASSERT_EQ(of_ranks.size(), static_cast<std::size_t>(kSteps * n));
  for (int step = 0; step < kSteps; ++step) {
    EXPECT_EQ(iter[step], step);
    EXPECT_EQ(own[step], step) << "as rank 0 prints it";
    EXPECT_EQ(mean[step], step + 0.5 * (n - 1));
    EXPECT_EQ(low[step], step);
    EXPECT_EQ(high[step], step + n - 1);
    EXPECT_DOUBLE_EQ(deviation[step], std::sqrt((n * n - 1) / 12.0));
    for (int rank = 0; rank < n; ++rank) EXPECT_EQ(of_ranks[step * n + rank], step + rank);
  }
  const File file = *File::Open(path);
  EXPECT_EQ(*data::TextAttribute(file, "/dt", "statistic"), "value of rank 0");
  EXPECT_EQ(*data::TextAttribute(file, "/dt_per_rank", "units"), "s");
  EXPECT_EQ(*data::IntAttribute(file, "/", "complete"), 1);
  EXPECT_EQ(data::ReadArray<std::int64_t>(file, "/rank")->size(), static_cast<std::size_t>(n));
}

// A metric of the last rank only, from step 5 on; one of all but the last.
TEST(RankHistory, MetricsMayBeMissingOnSomeRanks) {
  const std::string path = NewPath("missing.h5");
  auto history = *RankHistory::Create(World(), {.path = path,
                                                .metrics = {{{"loss"}, RankStatistics::kStatistics},
                                                            {{"late"}, RankStatistics::kStatistics},
                                                            {{"most"}, RankStatistics::kStatistics}},
                                                .gather_every = 3});
  const bool last = World().rank() == World().size() - 1;
  for (int step = 0; step < 10; ++step) {
    std::vector<data::Scalar> scalars = {{"loss", 1}};
    if (last && step >= 5) scalars.push_back({"late", 7});
    if (!last) scalars.push_back({"most", 1.0 * World().rank()});
    ASSERT_TRUE(history->Append(scalars).ok());
  }
  ASSERT_TRUE(history->Close().ok());
  if (World().rank() != 0) return;
  const std::vector<double> late = Column(path, "late"), spread = Column(path, "late_std");
  ASSERT_EQ(late.size(), 10u);
  for (int step = 0; step < 10; ++step) {
    if (step < 5) {
      EXPECT_THAT(late[step], IsNan());
    } else {
      EXPECT_EQ(late[step], 7);
      EXPECT_EQ(spread[step], 0) << "over the one rank that gave it";
    }
  }
  EXPECT_THAT(Column(path, "loss"), Each(1));
  if (World().size() == 1) return;
  EXPECT_THAT(Column(path, "most"), Each(0.5 * (World().size() - 2)));
}

TEST(RankHistory, OneAllGatherPerBlock) {
  const std::string path = NewPath("calls.h5");
  auto history = *RankHistory::Create(World(), {.path = path, .metrics = Loss(), .gather_every = 5});
  const auto calls = [] {
    return World().stats().at("history")[static_cast<int>(comm::Operation::kAllGather)].calls;
  };
  for (int step = 0; step < 5; ++step) ASSERT_TRUE(history->Append({{"loss", 1}}).ok());
  const std::int64_t before = calls();
  for (int step = 0; step < 14; ++step) ASSERT_TRUE(history->Append({{"loss", 1}}).ok());
  EXPECT_EQ(calls() - before, 2);
  ASSERT_TRUE(history->Flush().ok());
  EXPECT_EQ(calls() - before, 3);
  if (World().rank() == 0) {
    EXPECT_EQ(Column(path, "loss").size(), 19u);
  }
  ASSERT_TRUE(history->Close().ok());
}

TEST(RankHistory, AllRanksAreToldOfAnOldRun) {
  const std::string path = NewPath("old.h5");
  ASSERT_TRUE((*RankHistory::Create(World(), {.path = path}))->Close().ok());
  const absl::Status refused = RankHistory::Create(World(), {.path = path}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("holds an earlier run"));
}

// Only the last rank gives an unknown name: every rank gets the same error from the same call.
TEST(RankHistory, AnErrorOfOneRankIsToldToAllInTheSameCall) {
  auto history =
      *RankHistory::Create(World(), {.path = NewPath("error.h5"), .metrics = Loss(), .gather_every = 4});
  const bool last = World().rank() == World().size() - 1;
  int told_at = -1;
  for (int step = 0; step < 8 && told_at < 0; ++step) {
    const absl::Status status = history->Append({{last && step == 1 ? "bad name" : "loss", 1}});
    if (status.ok()) continue;
    told_at = step;
    EXPECT_THAT(std::string(status.message()), HasSubstr("\"bad name\""));
  }
  EXPECT_EQ(told_at, 3) << "the call that gathers";
  EXPECT_FALSE(history->Append({{"loss", 1}}).ok()) << "and from then on";
  EXPECT_FALSE(history->Flush().ok());
  EXPECT_FALSE(history->Close().ok());
}

// Keeps the files of this process from growing while it lives, as a full disk does.
class FullDisk {
 public:
  FullDisk() {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none = {.rlim_cur = 1, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
    signal(SIGXFSZ, SIG_IGN);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_;
};

// Rank 0 writes in the second and fourth call; all ranks get the error one block later.
TEST(RankHistory, AnErrorOfTheFileIsToldWithTheNextBlock) {
  auto history =
      *RankHistory::Create(World(), {.path = NewPath("file_error.h5"), .metrics = Loss(), .gather_every = 2});
  std::vector<bool> ok;
  for (int step = 0; step < 6; ++step) {
    std::optional<FullDisk> disk;
    if (step == 3 && World().rank() == 0) disk.emplace();
    ok.push_back(history->Append({{"loss", 1}}).ok());
  }
  EXPECT_THAT(ok, ::testing::ElementsAre(true, true, true, true, true, false));
}

TEST(RankHistory, CollidingNamesAreRefusedOnAllRanks) {
  const std::vector<RankColumn> metrics = {{{"dt"}, RankStatistics::kStatistics}, {{"dt_max"}}};
  const absl::Status status =
      RankHistory::Create(World(), {.path = NewPath("collide.h5"), .metrics = metrics}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
}

// Every rank runs a history of its own, which ends as if killed in the fifth step of the third block.
TEST(RankHistory, AKillLosesAtMostWhatWasNotGathered) {
  const std::string path = NewPath("killed.h5") + std::to_string(World().rank());
  for (const char* suffix : {"", ".journal"}) fs::remove(path + suffix);
  const pid_t child = fork();
  if (child == 0) {
    auto history = *RankHistory::Create(comm::Communicator::Self(),
                                        {.path = path, .metrics = Loss(), .gather_every = 10});
    for (int step = 0; step < 25; ++step) {
      if (!history->Append({{"loss", 1.0 * step}}).ok()) _exit(1);
    }
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_TRUE(data::History::Recover(path).ok());
  const std::vector<double> loss = Column(path, "loss");
  ASSERT_EQ(loss.size(), 20u);
  EXPECT_EQ(loss.back(), 19);
}

TEST(RankHistory, ResumesAfterTheDrawsOfACheckpoint) {
  const std::string path = NewPath("resume.h5");
  const std::vector<RankColumn> metrics = {{{"dt", "s"}, RankStatistics::kEachRank}};
  auto first = *RankHistory::Create(World(), {.path = path, .metrics = metrics, .gather_every = 2});
  for (int step = 0; step < 6; ++step) ASSERT_TRUE(first->Append({{"dt", 1.0 * step}}).ok());
  first.reset();
  World().Barrier();
  auto second =
      *RankHistory::Create(World(), {.path = path, .metrics = metrics, .gather_every = 2, .resume_draws = 4});
  ASSERT_TRUE(second->Append({{"dt", 40}}).ok());
  EXPECT_EQ(second->draws(), 5);  // what a checkpoint of the resumed run keeps
  ASSERT_TRUE(second->Close().ok());
  if (World().rank() != 0) return;
  EXPECT_THAT(Column(path, "dt"), ::testing::ElementsAre(0, 1, 2, 3, 40));
  EXPECT_EQ(Column(path, "dt_per_rank").size(), static_cast<std::size_t>(5 * World().size()));
}

TEST(RankHistory, ResumesOnOtherNumbersOfRanks) {
  const std::string path = NewPath("other_ranks.h5");
  const int ranks = World().size();
  const auto run = [&](const comm::Communicator& group, std::int64_t draws, double dt) {
    const RankHistoryOptions options = {
        .path = path, .metrics = {{{"dt", "s"}, RankStatistics::kEachRank}}, .resume_draws = draws};
    auto history = *RankHistory::Create(group, options);
    ASSERT_TRUE(history->Append({{"dt", dt + group.rank()}}).ok());
    ASSERT_TRUE(history->Close().ok());
  };
  run(World(), -1, 10);
  World().Barrier();
  if (World().rank() == 0) run(comm::Communicator::Self(), 1, 20);
  World().Barrier();
  run(World(), 2, 30);
  if (World().rank() != 0) return;
  EXPECT_THAT(Column(path, "dt"), ::testing::ElementsAre(10, 20, 30));
  std::vector<double> expected(3 * ranks, std::nan(""));
  for (int rank = 0; rank < ranks; ++rank) {
    expected[rank] = 10 + rank;
    expected[2 * ranks + rank] = 30 + rank;
  }
  if (ranks == 1) expected[1] = 20;
  EXPECT_THAT(Column(path, "dt_per_rank"), ::testing::Pointwise(::testing::NanSensitiveDoubleEq(), expected));
  if (ranks == 1) return;
  EXPECT_THAT(Column(path, "dt_per_rank_of_1"), ::testing::ElementsAre(IsNan(), 20, IsNan()));
  EXPECT_EQ(data::ReadArray<std::int64_t>(*File::Open(path), "/rank_of_1")->size(), 1u);
}

// Given by the last rank only, in odd steps; then a resumed run continues it, and another length is an error.
TEST(RankHistory, VectorsOfOneRankComeIntoTheFileAndTheExports) {
  const std::string path = NewPath("load.h5"), csv = NewPath("load.csv"), lines = NewPath("load.jsonl");
  RankHistoryOptions options = {
      .path = path,
      .metrics = {{{"iter"}}, {{.name = "load", .units = "1", .dimension = "expert", .length = 2}}},
      .gather_every = 2,
      .exports = {.csv = csv, .json_lines = lines, .tensorboard = NewPath("load_tb")}};
  const bool last = World().rank() == World().size() - 1;
  const auto append = [&](RankHistory& history, int step) {
    const std::vector<double> load = {1.0 * step, 0.5};
    const std::vector<data::Vector> vectors = {{"load", load}};
    const bool gives = last && step % 2 == 1;
    return history.Append({{"iter", 1.0 * step}}, gives ? vectors : std::vector<data::Vector>());
  };
  auto first = *RankHistory::Create(World(), options);
  for (int step = 0; step < 4; ++step) ASSERT_TRUE(append(*first, step).ok());
  ASSERT_TRUE(first->Close().ok());
  if (World().rank() == 0) {
    EXPECT_EQ(*data::ReadWholeFile(csv), "draw,iter,load[0],load[1]\n0,0,,\n1,1,1,0.5\n2,2,,\n3,3,3,0.5\n");
    EXPECT_THAT(*data::ReadWholeFile(lines), HasSubstr("{\"draw\":3,\"iter\":3,\"load\":[3,0.5]}"));
  }
  World().Barrier();
  options.resume_draws = 3;
  auto second = *RankHistory::Create(World(), options);
  ASSERT_TRUE(append(*second, 5).ok());
  ASSERT_TRUE(second->Close().ok());
  if (World().rank() == 0) {
    EXPECT_THAT(Column(path, "iter"), ::testing::ElementsAre(0, 1, 2, 5));
    EXPECT_THAT(Column(path, "load"),
                ::testing::ElementsAre(IsNan(), IsNan(), 1, 0.5, IsNan(), IsNan(), 5, 0.5));
    EXPECT_EQ(data::ReadArray<std::int64_t>(*File::Open(path), "/expert")->size(), 2u);
  }
  options.metrics[1].metric.length = 3;
  const absl::Status refused = RankHistory::Create(World(), options).status();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("length 3 (0 is a number), but 2 before"));
}

TEST(RankHistory, AVectorOfAnotherLengthIsToldToAll) {
  auto history = *RankHistory::Create(
      World(),
      {.path = NewPath("length.h5"), .metrics = {{{.name = "load", .length = 2}}}, .gather_every = 2});
  const bool last = World().rank() == World().size() - 1;
  const std::vector<double> load(last ? 3 : 2, 1.0);
  ASSERT_TRUE(history->Append({}, {{"load", load}}).ok());
  const absl::Status told = history->Append({}, {{"load", load}});
  EXPECT_THAT(std::string(told.message()), HasSubstr("\"load\": 3 values were given, but it has 2"));
}

TEST(RankHistory, FeedsTheExports) {
  const std::string path = NewPath("exports.h5"), csv = NewPath("exports.csv"),
                    lines = NewPath("exports.jsonl");
  const std::string folder = NewPath("exports_tb");
  auto history =
      *RankHistory::Create(World(), {.path = path,
                                     .attributes = {{"settings", "--batch-size=64"}},
                                     .metrics = Loss(),
                                     .gather_every = 2,
                                     .exports = {.csv = csv, .json_lines = lines, .tensorboard = folder}});
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(history->Append({{"loss", step == 1 ? kNaN : 0.5}}).ok());
  ASSERT_TRUE(history->Close().ok());
  if (World().rank() != 0) return;
  EXPECT_EQ(*data::ReadWholeFile(csv),
            "draw,loss,loss_min,loss_max,loss_std\n0,0.5,0.5,0.5,0\n1,nan,nan,nan,nan\n"
            "2,0.5,0.5,0.5,0\n");
  EXPECT_THAT(*data::ReadWholeFile(lines), HasSubstr("{\"draw\":1,\"loss\":\"NaN\",\"loss_min\":\"NaN\""));
  EXPECT_FALSE(fs::is_empty(folder));
}

// Of the records of a TensorBoard file: a length of 8 bytes, a checksum of 4, the event, a checksum of 4. An event begins
// with field 1, its time, a double.
std::vector<double> TimesOfEvents(const std::string& folder) {
  const std::string bytes = *data::ReadWholeFile(fs::directory_iterator(folder)->path().string());
  std::vector<double> times;
  for (std::size_t at = 0; at + 12 < bytes.size();) {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at, sizeof length);
    EXPECT_EQ(bytes[at + 12], '\x09');
    std::memcpy(&times.emplace_back(), bytes.data() + at + 13, sizeof(double));
    at += 16 + length;
  }
  return times;
}

// Not of the all-gather, which comes later.
TEST(RankHistory, DrawsHaveTheTimeAtWhichTheyWereGiven) {
  const std::string folder = NewPath("times_tb");
  auto history = *RankHistory::Create(World(), {.path = NewPath("times.h5"),
                                                .metrics = Loss(),
                                                .gather_every = 2,
                                                .exports = {.tensorboard = folder}});
  for (int step = 0; step < 4; ++step) {
    usleep(100'000);
    ASSERT_TRUE(history->Append({{"loss", 0.5}}).ok());
  }
  ASSERT_TRUE(history->Close().ok());
  if (World().rank() != 0) return;
  const std::vector<double> times = TimesOfEvents(folder);
  ASSERT_GE(times.size(), 4U);
  for (std::size_t i = times.size() - 3; i < times.size(); ++i)
    EXPECT_GE(times[i] - times[i - 1], 0.099) << i;
}

// So that the corrected command works.
TEST(RankHistory, AfterAFileThatCannotBeMadeThereAreNoOthers) {
  const std::string path = NewPath("refused.h5"), csv = NewPath("refused.csv"), tb = NewPath("refused_tb");
  const bool looks = World().rank() == 0;
  RankHistoryOptions options = {
      .path = path, .metrics = Loss(), .gather_every = 1, .exports = {.csv = csv, .tensorboard = tb}};
  if (looks) {
    fs::create_directories(tb);
    std::ofstream(tb + "/events.out.tfevents.1.of_another_run") << "draws";
  }
  const absl::Status refused = RankHistory::Create(World(), options).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(refused.message()), HasSubstr(tb));
  if (looks) {
    EXPECT_FALSE(fs::exists(path));
    EXPECT_FALSE(fs::exists(csv));
  }
  options.exports.tensorboard.clear();
  auto history = *RankHistory::Create(World(), options);
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(history->Append({{"loss", 1.0 * step}}).ok());
  ASSERT_TRUE(history->Close().ok());
  options.exports = {
      .csv = NewPath("other.csv"), .json_lines = NewPath("other.jsonl"), .tensorboard = NewPath("other_tb")};
  EXPECT_EQ(RankHistory::Create(World(), options).status().code(), absl::StatusCode::kAlreadyExists);
  if (looks) {
    EXPECT_FALSE(fs::exists(options.exports.csv));
    EXPECT_FALSE(fs::exists(options.exports.json_lines));
    EXPECT_TRUE(fs::is_empty(options.exports.tensorboard));
  }
  options.resume_draws = 1;
  options.exports = {.csv = testing::TempDir() + "/no/such/folder/run.csv"};
  EXPECT_FALSE(RankHistory::Create(World(), options).ok());
  if (looks) {
    EXPECT_EQ(Column(path, "loss").size(), 3u);
  }
}

}  // namespace
}  // namespace plait::rank_history
