// Paths of the files, resumed histories, plots, and errors that are the same on all ranks.
#include "tools/training/run_outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/testing/world.h"
#include "data/hdf5/atomic_file.h"
#include "data/history/history.h"
#include "data/history/history_table.h"

namespace plait::training {
namespace {

// Discards the plots for the terminal.
const RunOutputs::Print kNowhere = [](const std::string&) {};

namespace fs = std::filesystem;
using comm::testing::World;
using rank_history::RankStatistics;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;
using ::testing::Pair;

// One place for all ranks, and apart from the same test on other numbers of ranks.
std::string NewFolder(const std::string& name) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/", World().size(), "_", name);
  if (World().rank() == 0) fs::remove_all(folder);
  World().Barrier();
  return folder;
}

RunOutputsOptions OptionsIn(const std::string& folder) {
  return {.program = "train_x",
          .outputs = folder,
          .metrics = {{{"step", "1", "steps done"}, RankStatistics::kRankZero},
                      {{"dt", "s", "time per step"}, RankStatistics::kEachRank}},
          .gather_every = 2};
}

absl::Status Record(RunOutputs& run, int from, int to) {
  for (int step = from; step < to; ++step) {
    const absl::Status appended = run.history().Append({{"step", 1.0 * step}, {"dt", 0.5}});
    if (!appended.ok()) return appended;
  }
  return absl::OkStatus();
}

TEST(RunOutputs, KeepsHistoryAndTraceInTheFolder) {
  const std::string folder = NewFolder("kept");
  RunOutputsOptions options = OptionsIn(folder);
  options.trace = true;
  RunOutputs run = *RunOutputs::Open(options, {.program = "train_x"}, World());
  EXPECT_EQ(run.history_path(), folder + "/history.h5");
  EXPECT_EQ(run.trace_path(), folder + "/trace.json");
  EXPECT_TRUE(Record(run, 0, 3).ok());
  run.trace().trace()->Add("step", 0, 1000, 2000);
  EXPECT_TRUE(run.Close().ok());
  if (World().rank() != 0) return;
  EXPECT_TRUE(fs::exists(folder + "/trace.json"));
  const data::HistoryTable table = *data::HistoryTable::Open(run.history_path());
  EXPECT_THAT(*table.Column("step"), ElementsAre(0, 1, 2));
  EXPECT_EQ(table.Find("dt")->units, "s");
  EXPECT_NE(table.Find("dt_per_rank"), nullptr);  // declared for each rank
  EXPECT_THAT(table.attributes(), Contains(Pair("trace", "trace.json")));
}

// As members of an ensemble, and jobs of an array.
TEST(RunOutputs, RunsThatBeginInTheSameSecondHaveFoldersOfTheirOwn) {
  const std::string folder = NewFolder("same_second");
  setenv("BUILD_WORKING_DIRECTORY", folder.c_str(), 1);
  std::set<std::string> paths;
  for (int run = 0; run < 4; ++run) {
    const absl::StatusOr<RunOutputs> outputs = RunOutputs::Open(OptionsIn(""), {}, World());
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    paths.insert(outputs->folder());
  }
  unsetenv("BUILD_WORKING_DIRECTORY");
  EXPECT_EQ(paths.size(), 4);
}

TEST(RunOutputs, AHistoryElsewhereNamesTheTraceFromThere) {
  const std::string folder = NewFolder("apart");
  if (World().rank() == 0) fs::create_directories(folder + "/numbers");
  World().Barrier();
  RunOutputsOptions options = OptionsIn(folder + "/files");
  options.history = folder + "/numbers/run.h5";
  options.trace = true;
  RunOutputs run = *RunOutputs::Open(options, {.program = "train_x"}, World());
  EXPECT_TRUE(Record(run, 0, 1).ok());
  EXPECT_TRUE(run.Close().ok());
  if (World().rank() != 0) return;
  EXPECT_THAT(data::HistoryTable::Open(options.history)->attributes(),
              Contains(Pair("trace", "../files/trace.json")));
}

TEST(RunOutputs, AResumedRunGoesOnWithItsHistory) {
  const std::string folder = NewFolder("resumed");
  RunOutputsOptions options = OptionsIn(folder);
  {
    RunOutputs first = *RunOutputs::Open(options, {}, World());
    EXPECT_TRUE(first.trace_path().empty());
    EXPECT_TRUE(Record(first, 0, 5).ok());
    EXPECT_TRUE(first.Close().ok());
  }
  options.resumed_draws = 4;
  RunOutputs second = *RunOutputs::Open(options, {}, World());
  EXPECT_EQ(second.history().draws(), 4);
  EXPECT_TRUE(Record(second, 40, 41).ok());
  EXPECT_EQ(second.history().draws(), 5);
  EXPECT_TRUE(second.Close().ok());
  if (World().rank() == 0) {
    EXPECT_THAT(*data::HistoryTable::Open(second.history_path())->Column("step"),
                ElementsAre(0, 1, 2, 3, 40));
  }
  // There is no file of that name to continue.
  options.history = folder + "/other.h5";
  RunOutputs third = *RunOutputs::Open(options, {}, World());
  EXPECT_EQ(third.history().draws(), 0);
}

TEST(RunOutputs, AResumedHistoryTellsNoTraceAndCommandOfTheAttemptBefore) {
  RunOutputsOptions options = OptionsIn(NewFolder("attempts"));
  const auto attributes = [&](bool trace, const std::string& command) {
    options.trace = trace;
    RunOutputs run = *RunOutputs::Open(options, {.program = "train_x", .launch_command = command}, World());
    EXPECT_TRUE(Record(run, 0, 1).ok());
    EXPECT_TRUE(run.Close().ok());
    World().Barrier();
    const data::HistoryTable table = *data::HistoryTable::Open(run.history_path());
    World().Barrier();
    return std::pair(table.Attribute("trace"), table.Attribute("launch_command"));
  };
  EXPECT_THAT(attributes(true, "srun train_x"), Pair("trace.json", "srun train_x"));
  options.resumed_draws = 1;
  EXPECT_THAT(attributes(false, ""), Pair("", ""));
  EXPECT_THAT(attributes(true, "mpirun train_x"), Pair("trace.json", "mpirun train_x"));
}

// Records steps `from` to `to` - 1, and resumes after a checkpoint at step `done` that counts `draws`. Returns the steps
// of the history after one more, 100. Without `closes` as after a kill.
std::vector<double> StepsAfterResume(const std::string& folder, int from, int to, std::int64_t done,
                                     std::int64_t draws, bool closes = true) {
  RunOutputsOptions options = OptionsIn(NewFolder(folder));
  options.steps_done = from - 1;
  {
    RunOutputs first = *RunOutputs::Open(options, {}, World());
    EXPECT_TRUE(Record(first, from, to).ok());
    EXPECT_TRUE(closes ? first.Close().ok() : first.history().Flush().ok());
  }
  options.steps_done = done;
  options.resumed_draws = draws;
  RunOutputs second = *RunOutputs::Open(options, {}, World());
  EXPECT_TRUE(Record(second, 100, 101).ok());
  EXPECT_TRUE(second.Close().ok());
  World().Barrier();
  std::vector<double> steps = *data::HistoryTable::Open(second.history_path())->Column("step");
  World().Barrier();
  return steps;
}

TEST(RunOutputs, AResumedHistoryHasTheStepsUpToTheCheckpoint) {
  EXPECT_THAT(StepsAfterResume("later", 1, 6, 3, 3), ElementsAre(1, 2, 3, 100));
  EXPECT_THAT(StepsAfterResume("lost", 1, 4, 5, 5, false), ElementsAre(1, 2, 3, IsNan(), IsNan(), 100))
      << "in a power failure";
  EXPECT_THAT(StepsAfterResume("all_lost", 1, 1, 2, 2, false), ElementsAre(IsNan(), IsNan(), 100));
}

// The checkpoint counts the draws of the file that its run wrote, which need not be this one.
TEST(RunOutputs, AnotherHistoryHasTheStepsUpToTheCheckpointToo) {
  EXPECT_THAT(StepsAfterResume("killed", 4, 7, 3, 3), ElementsAre(100)) << "before its first checkpoint";
  EXPECT_THAT(StepsAfterResume("partly", 4, 9, 6, 6), ElementsAre(4, 5, 6, 100));
  EXPECT_THAT(StepsAfterResume("longer", 1, 6, 5, 2), ElementsAre(1, 2, 3, 4, 5, 100));
  EXPECT_THAT(StepsAfterResume("empty", 4, 4, 3, 3), ElementsAre(100)) << "killed before its first draw";
  EXPECT_THAT(StepsAfterResume("none", 1, 6, 3, 0), ElementsAre(1, 2, 3, 100)) << "the checkpoint's had none";
  EXPECT_THAT(StepsAfterResume("older", 1, 4, 5, 5), ElementsAre(1, 2, 3, 100)) << "of a run that has ended";
  EXPECT_THAT(StepsAfterResume("empty_older", 1, 1, 5, 5), ElementsAre(100));
}

// Whether an attempt was killed before its first checkpoint, or its checkpoints were removed, cannot be seen.
TEST(RunOutputs, WithoutACheckpointTheHistoryOfAKilledRunIsKeptUnderAnotherName) {
  RunOutputsOptions options = OptionsIn(NewFolder("again"));
  std::string said;
  options.say = [&said](const std::string& line) { absl::StrAppend(&said, line, "\n"); };
  const auto begin = [&options](bool again) {
    options.begins_again = again;
    return RunOutputs::Open(options, {}, World());
  };
  EXPECT_TRUE(begin(false).ok()) << "killed before its first draw";
  World().Barrier();
  {
    RunOutputs killed = *begin(true);
    EXPECT_EQ(said, "") << "nothing to keep";
    EXPECT_TRUE(Record(killed, 1, 3).ok());
    EXPECT_TRUE(killed.history().Flush().ok());
  }
  World().Barrier();
  RunOutputs whole = *begin(true);
  EXPECT_EQ(whole.history().draws(), 0);
  EXPECT_TRUE(Record(whole, 1, 2).ok());
  EXPECT_TRUE(whole.Close().ok());
  World().Barrier();
  const absl::Status ended = begin(true).status();
  EXPECT_EQ(ended.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(ended.message()), HasSubstr("is of a run that has ended"));
  if (World().rank() > 0) return;
  const std::string& path = whole.history_path();
  EXPECT_EQ(said,
            absl::StrCat("--history: ", path,
                         " has draws of an attempt that left no checkpoint here; kept as ", path, ".1\n"));
  const auto steps = [](const std::string& file) { return *data::HistoryTable::Open(file)->Column("step"); };
  EXPECT_THAT(steps(path), ElementsAre(1));
  EXPECT_THAT(steps(path + ".1"), ElementsAre(1, 2));
  EXPECT_FALSE(fs::exists(path + ".2"));
}

TEST(RunOutputs, WhatAHistoryWillBeRefusedForIsSaidBefore) {
  const std::string folder = NewFolder("places"), path = folder + "/run.h5";
  if (World().rank() > 0) return;
  fs::create_directories(folder);
  for (const bool again : {false, true}) {
    EXPECT_TRUE(CheckHistoryPlace(path, again).ok());
    EXPECT_THAT(std::string(CheckHistoryPlace(folder, again).message()),
                HasSubstr("--history: " + folder + " is a folder"));
  }
  auto history = *data::History::Create(path, {});
  EXPECT_TRUE(history->Append({{"step", 1}}).ok());
  EXPECT_THAT(std::string(CheckHistoryPlace(path, false).message()),
              HasSubstr("--history: " + path + ": holds an earlier run"));
  EXPECT_TRUE(CheckHistoryPlace(path, true).ok());
  EXPECT_TRUE(history->Close().ok());
  EXPECT_THAT(std::string(CheckHistoryPlace(path, true).message()), HasSubstr("is of a run that has ended"));
}

// Reports need it: the first draw's number of steps is otherwise unknown.
TEST(RunOutputs, AHistoryThatBeginsLateSaysSo) {
  const std::string folder = NewFolder("late");
  RunOutputsOptions options = OptionsIn(folder);
  const auto began_at = [&](std::int64_t resumed_draws, std::int64_t steps_done) {
    options.resumed_draws = resumed_draws;
    options.steps_done = steps_done;
    RunOutputs run = *RunOutputs::Open(options, {}, World());
    EXPECT_TRUE(Record(run, 21, 23).ok());
    EXPECT_TRUE(run.Close().ok());
    World().Barrier();
    const std::string said = data::HistoryTable::Open(run.history_path())->Attribute("began_at_step");
    World().Barrier();
    return said;
  };
  EXPECT_EQ(began_at(20, 20), "20") << "no file to continue";
  EXPECT_EQ(began_at(1, 22), "20") << "the file goes on";
  EXPECT_EQ(began_at(0, 0), "0") << "the file is emptied";
  options.history = folder + "/first.h5";
  EXPECT_EQ(began_at(-1, 0), "") << "from the beginning, as is usual";
}

TEST(RunOutputs, ErrorsAreTheSameOnAllRanks) {
  const std::string folder = NewFolder("errors");
  EXPECT_TRUE(RunOutputs::Open(OptionsIn(folder), {}, World())->Close().ok());
  const absl::Status there = RunOutputs::Open(OptionsIn(folder), {}, World()).status();
  EXPECT_EQ(there.code(), absl::StatusCode::kAlreadyExists) << there;
  EXPECT_THAT(std::string(there.message()), HasSubstr("history.h5"));
  const absl::Status file = RunOutputs::Open(OptionsIn(folder + "/history.h5"), {}, World()).status();
  EXPECT_THAT(std::string(file.message()), HasSubstr("--outputs: "));
  RunOutputsOptions options = OptionsIn(folder);
  options.history = folder + "/nowhere/run.h5";
  const absl::Status nowhere = RunOutputs::Open(options, {}, World()).status();
  EXPECT_THAT(std::string(nowhere.message()), HasSubstr("--history: "));
}

TEST(RunOutputs, PlotsThatCannotBeDrawnAreToldAndNoError) {
  const std::string folder = NewFolder("plots");
  RunOutputs run = *RunOutputs::Open(OptionsIn(folder), {}, World());
  EXPECT_TRUE(Record(run, 0, 3).ok());
  EXPECT_TRUE(run.Close().ok());
  if (World().rank() != 0) return;
  std::string said;
  const base::Log log = *base::MakeLog({}, [&said](absl::string_view line) { absl::StrAppend(&said, line); });
  run.Draw({.x = "step", .plots = {{"absent"}}}, log, kNowhere);
  EXPECT_THAT(said, HasSubstr("no plots: "));
  EXPECT_THAT(said, HasSubstr("absent"));
  EXPECT_FALSE(fs::exists(folder + "/svgs"));
}

// The last rank alone has the vectors, in even steps: the picture's text has the columns of those.
TEST(RunOutputs, DrawsHeatMapsOfVectors) {
  const std::string folder = NewFolder("heat_maps");
  RunOutputsOptions options = OptionsIn(folder);
  options.metrics.push_back(
      {{.name = "expert_load_3", .long_name = "rows of an expert", .dimension = "expert", .length = 3}});
  RunOutputs run = *RunOutputs::Open(options, {}, World());
  const bool last = World().rank() == World().size() - 1;
  for (int step = 0; step < 4; ++step) {
    // [0, 10, 0] and [0, 10, 5]: of [0, 10.5], in eighths.
    const std::vector<double> load = {0, 10, step == 2 ? 5.0 : 0.0};
    std::vector<data::Vector> vectors;
    if (last && step % 2 == 0) vectors.push_back({"expert_load_3", load});
    ASSERT_TRUE(run.history().Append({{"step", 10.0 * step}, {"dt", 0.5}}, vectors).ok());
  }
  EXPECT_TRUE(run.Close().ok());
  if (World().rank() != 0) return;
  std::string said;
  const base::Log log = *base::MakeLog({}, [&said](absl::string_view line) { absl::StrAppend(&said, line); });
  HistoryPlots wanted = {
      .x = "step", .skips_nan = true, .heat_maps = {"expert_load_3", "expert_load_4", "dt"}};
  run.Draw(wanted, log, kNowhere);
  EXPECT_THAT(said, HasSubstr("plots of 1 metrics saved in"));
  for (const char* file : {"svgs/expert_load_3.svg", "pngs/expert_load_3.png"}) {
    EXPECT_TRUE(fs::exists(folder + "/" + file)) << file;
  }
  EXPECT_FALSE(fs::exists(folder + "/tplots/expert_load_4.txt"));
  EXPECT_FALSE(fs::exists(folder + "/tplots/dt.txt")) << "is no vector";
  const auto bars = [](const char* left, const char* right) {
    std::string text;
    for (const char* bar : {left, right}) {
      for (int i = 0; i < 38; ++i) text += bar;
    }
    return text;
  };
  const std::string text = *data::ReadWholeFile(folder + "/tplots/expert_load_3.txt");
  EXPECT_THAT(text, HasSubstr(absl::StrCat("2┤", bars("▁", "▄"), "│\n1┤", bars("█", "█"), "│\n0┤",
                                           bars("▁", "▁"), "│\n")));
  EXPECT_THAT(text, HasSubstr("\nexpert   rows of an expert: 0 ▁▂▃▄▅▆▇█ 10.5\n"));
  // Without leaving out: steps 0, 10, 20, 30, every other one empty.
  wanted.skips_nan = false;
  run.Draw(wanted, log, kNowhere);
  EXPECT_THAT(*data::ReadWholeFile(folder + "/tplots/expert_load_3.txt"),
              HasSubstr("6 of 12 values are NaN, the first at step 10, expert 0"));
}

}  // namespace
}  // namespace plait::training
