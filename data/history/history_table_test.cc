#include "data/history/history_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5_hl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "data/hdf5/atomic_file.h"
#include "data/hdf5/checked_array.h"
#include "data/history/history.h"

namespace plait::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsNan;
using ::testing::Pair;
using ::testing::StartsWith;
namespace fs = std::filesystem;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNever = 1e6;

std::string NewPath(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name;
  for (const char* suffix : {"", ".journal"}) fs::remove(path + suffix);
  return path;
}

std::unique_ptr<History> Started(const std::string& path) {
  return *History::Create(path, {.attributes = {{"host", "n1"}, {"seed", "12"}}, .commit_seconds = kNever});
}

HistoryTable Opened(const std::string& path) {
  absl::StatusOr<HistoryTable> table = HistoryTable::Open(path);
  EXPECT_TRUE(table.ok()) << table.status();
  return *std::move(table);
}

std::string Refusal(const std::string& path) {
  const absl::Status status = HistoryTable::Open(path).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), StartsWith(path + ": ")) << "which file";
  EXPECT_EQ(status.message().find('\n'), absl::string_view::npos) << "one line";
  return std::string(status.message()).substr(path.size() + 2);
}

TEST(HistoryTable, GivesWhatHistoryWrote) {
  const std::string path = NewPath("table.h5");
  auto history = Started(path);
  ASSERT_TRUE(history->Declare({"dt", "s", "time of a step", "mean over ranks"}).ok());
  const Metric per_rank = {.name = "dt_per_rank", .units = "s", .dimension = "rank", .length = 3};
  ASSERT_TRUE(history->Declare(per_rank).ok());
  ASSERT_TRUE(history->Append({{"dt", 0.5}, {"loss", kInf}}, {{"dt_per_rank", {1, 2, 3}}}).ok());
  ASSERT_TRUE(history->Append({{"dt", kNaN}}, {{"dt_per_rank", {4, 5, 6}}}).ok());
  ASSERT_TRUE(history->Append({{"dt", 1.5}, {"late", 7}}).ok());
  ASSERT_TRUE(history->Close().ok());

  const HistoryTable table = Opened(path);
  EXPECT_EQ(table.draws(), 3);
  EXPECT_EQ(table.journal_draws(), 0);
  EXPECT_TRUE(table.is_history());
  EXPECT_TRUE(table.complete());
  EXPECT_EQ(table.Attribute("host"), "n1");
  EXPECT_EQ(table.Attribute("none"), "");
  EXPECT_THAT(table.attributes(), testing::Contains(Pair("seed", "12")));
  for (const auto& [name, text] : table.attributes()) EXPECT_NE(name, "format_version");
  std::vector<std::string> names;
  for (const TableMetric& metric : table.metrics()) names.push_back(metric.name);
  EXPECT_THAT(names, testing::UnorderedElementsAre("dt", "loss", "late", "dt_per_rank"));
  const TableMetric& dt = *table.Find("dt");
  EXPECT_EQ(dt.units, "s");
  EXPECT_EQ(dt.long_name, "time of a step");
  EXPECT_EQ(dt.statistic, "mean over ranks");
  EXPECT_FALSE(dt.is_vector);
  EXPECT_EQ(table.Find("draw"), nullptr) << "a coordinate is no metric";
  EXPECT_EQ(table.Find("rank"), nullptr);
  EXPECT_THAT(*table.Column("dt"), ElementsAre(0.5, IsNan(), 1.5));
  EXPECT_THAT(*table.Column("loss"), ElementsAre(kInf, IsNan(), IsNan()));
  EXPECT_THAT(*table.Column("late"), ElementsAre(IsNan(), IsNan(), 7));
  EXPECT_THAT(*table.DrawNumbers(), ElementsAre(0, 1, 2));
  EXPECT_TRUE(table.Find("dt_per_rank")->is_vector);
  EXPECT_EQ(table.Find("dt_per_rank")->width, 3);
  EXPECT_EQ(table.Find("dt_per_rank")->dimension, "rank");
  EXPECT_THAT(*table.Column("dt_per_rank", 2), ElementsAre(3, 6, IsNan()));
  EXPECT_THAT(*table.Rows("dt_per_rank", 1, 2), ElementsAre(4, 5, 6, IsNan(), IsNan(), IsNan()));
  EXPECT_EQ(table.Column("nope").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(table.Column("dt_per_rank", 3).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(table.Rows("dt_per_rank", 2, 2).status().code(), absl::StatusCode::kInvalidArgument);
}

// A process that dies between two commits leaves draws in the journal. They are read, and nothing is touched.
TEST(HistoryTable, ReadsTheJournalOfAKilledRunAndChangesNothing) {
  const std::string path = NewPath("killed.h5");
  const pid_t child = fork();
  if (child == 0) {
    auto history = Started(path);
    bool good = history->Declare({.name = "v", .dimension = "layer", .length = 2}).ok();
    good = good && history->Append({{"loss", 1}, {"dt", 5}}, {{"v", {1, 2}}}).ok() && history->Commit().ok();
    good =
        good && history->Append({{"loss", 2}}, {{"v", {3, 4}}}).ok() && history->Append({{"late", 9}}).ok();
    good = good && history->Append({{"loss", 4}}, {{"w", {7, 8}}}).ok();
    _exit(good ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  const std::string file = *ReadWholeFile(path), journal = *ReadWholeFile(path + ".journal");
  const HistoryTable table = Opened(path);
  EXPECT_EQ(table.draws(), 4);
  EXPECT_EQ(table.journal_draws(), 3);
  EXPECT_FALSE(table.complete());
  EXPECT_THAT(*table.Column("loss"), ElementsAre(1, 2, IsNan(), 4));
  EXPECT_THAT(*table.Column("dt"), ElementsAre(5, IsNan(), IsNan(), IsNan()));
  EXPECT_THAT(*table.Column("late"), ElementsAre(IsNan(), IsNan(), 9, IsNan()));
  EXPECT_THAT(*table.Column("v", 1), ElementsAre(2, 4, IsNan(), IsNan()));
  EXPECT_THAT(*table.Rows("v", 0, 2), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(*table.Rows("v", 1, 2), ElementsAre(3, 4, IsNan(), IsNan()));
  EXPECT_THAT(*table.Rows("w", 2, 2), ElementsAre(IsNan(), IsNan(), 7, 8));
  EXPECT_THAT(*table.DrawNumbers(), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(*ReadWholeFile(path), file);
  EXPECT_EQ(*ReadWholeFile(path + ".journal"), journal);
}

// What a run left that was killed, beside a file that another program has written whole.
TEST(HistoryTable, ACompleteFileHasNoJournal) {
  const std::string path = NewPath("whole.h5"), other = NewPath("other.h5");
  auto killed = Started(other);
  ASSERT_TRUE(killed->Append({{"loss", 1}}).ok() && killed->Append({{"loss", 2}}).ok());
  const std::string journal = *ReadWholeFile(other + ".journal");
  auto whole = Started(path);
  ASSERT_TRUE(whole->Append({{"loss", 3}}).ok() && whole->Close().ok());
  EXPECT_EQ(Opened(path).draws(), 1);
  ASSERT_TRUE(WriteWholeFile(path + ".journal", journal).ok());
  EXPECT_EQ(Opened(path).draws(), 1);
  ASSERT_TRUE(History::Recover(path).ok());
  EXPECT_EQ(Opened(path).draws(), 1);
}

// The journal lies beside the file, wherever the link to it.
TEST(HistoryTable, OfALink) {
  const std::string path = NewPath("real.h5"), link = testing::TempDir() + "/links/link.h5";
  fs::create_directories(fs::path(link).parent_path());
  fs::remove(link);
  fs::create_symlink(path, link);
  auto history = Started(path);
  ASSERT_TRUE(history->Append({{"loss", 1}}).ok());
  EXPECT_EQ(Opened(link).draws(), 1);
  ASSERT_TRUE(history->Close().ok());
  auto resumed = History::Resume(link, 1, {});
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  ASSERT_TRUE((*resumed)->Append({{"loss", 2}}).ok());
  EXPECT_EQ(Opened(path).draws(), 2);
  ASSERT_TRUE((*resumed)->Close().ok());
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(Opened(path).draws(), 2);
}

TEST(HistoryTable, OfALinkWhoseFileTheHistoryMakes) {
  const std::string path = NewPath("made.h5"), link = testing::TempDir() + "/dangling/link.h5";
  fs::create_directories(fs::path(link).parent_path());
  fs::remove(link);
  fs::create_symlink("../made.h5", link);
  auto history = Started(link);
  ASSERT_TRUE(history->Append({{"loss", 1}}).ok());
  EXPECT_TRUE(fs::exists(path) && fs::exists(path + ".journal"));
  EXPECT_EQ(Opened(path).draws(), 1);
  ASSERT_TRUE(history->Close().ok());
  EXPECT_EQ(Opened(link).draws(), 1);
  EXPECT_FALSE(fs::exists(path + ".journal"));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(link).parent_path()), fs::directory_iterator()), 1);
}

// Records with valid checksums but invalid contents: the draws before them are read.
TEST(HistoryTable, StopsAtWhatAJournalCannotSay) {
  const auto record = [](const std::string& payload) {
    const std::uint32_t prefix[] = {static_cast<std::uint32_t>(payload.size()),
                                    Crc32(payload.data(), std::ssize(payload))};
    return std::string(reinterpret_cast<const char*>(prefix), sizeof(prefix)) + payload;
  };
  const auto metric = [](std::uint32_t id, const std::string& length) {
    return "M" + std::string(reinterpret_cast<const char*>(&id), 4) + "loss" + std::string(4, '\0') + "i" +
           '\0' + length + '\0';
  };
  const auto draw = [](std::int64_t number, std::uint32_t id) {
    const double value = 2;
    return "D" + std::string(reinterpret_cast<const char*>(&number), 8) +
           std::string(reinterpret_cast<const char*>(&id), 4) +
           std::string(reinterpret_cast<const char*>(&value), 8);
  };
  const std::string path = NewPath("hostile.h5");
  auto history = Started(path);
  ASSERT_TRUE(history->Append({{"loss", 1}}).ok());
  history.reset();  // not complete
  const std::string sound = "PLTJRNL2" + record(metric(0, "0")) + record(draw(1, 0));
  for (const std::string& last : {std::string("M"), std::string("D"), std::string("x"),
                                  metric(0xffffffff, "0"), metric(7, "0"), metric(1, "9000000000000000000"),
                                  metric(1, "-1"), draw(std::int64_t{1} << 60, 0), draw(-1, 0), draw(2, 9)}) {
    ASSERT_TRUE(WriteWholeFile(path + ".journal", sound + record(last) + record(draw(2, 0))).ok());
    EXPECT_THAT(*Opened(path).Column("loss"), ElementsAre(1, 2)) << last;
  }
  // A journal that begins far behind the file is another one's.
  ASSERT_TRUE(WriteWholeFile(path + ".journal",
                             "PLTJRNL2" + record(metric(0, "0")) + record(draw(std::int64_t{1} << 60, 0)))
                  .ok());
  EXPECT_EQ(Opened(path).draws(), 1);
  EXPECT_TRUE(History::Recover(path).ok());
  EXPECT_EQ(Opened(path).draws(), 1);
}

TEST(HistoryTable, ARunThatGoesOnCanBeRead) {
  const std::string path = NewPath("live.h5");
  auto history = Started(path);
  EXPECT_THAT(Refusal(path), StartsWith("holds no draws yet"));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(history->Append({{"loss", 1.0 * i}}).ok());
    ASSERT_EQ(Opened(path).draws(), 2 * i + 1);
    ASSERT_TRUE(history->Commit().ok());
    ASSERT_TRUE(history->Append({{"loss", 1.0 * i}}).ok());
    ASSERT_EQ(Opened(path).draws(), 2 * i + 2);
  }
}

// A table keeps the state of the moment when it was opened, though the run has replaced the file since.
TEST(HistoryTable, KeepsItsMomentWhileTheRunGoesOn) {
  const std::string path = NewPath("moment.h5");
  auto history = Started(path);
  ASSERT_TRUE(history->Append({{"loss", 1}}).ok());
  ASSERT_TRUE(history->Commit().ok());
  ASSERT_TRUE(history->Append({{"loss", 2}}).ok());
  const HistoryTable table = Opened(path);
  ASSERT_TRUE(history->Append({{"loss", 3}}).ok());
  ASSERT_TRUE(history->Commit().ok());
  EXPECT_THAT(*table.Column("loss"), ElementsAre(1, 2));
}

// As h5py writes a data set without coordinates: integers and floats of several widths, groups, and arrays
// that are no metrics.
TEST(HistoryTable, ReadsPlainArraysOfAnotherProgram) {
  const std::string path = NewPath("train_dataset.h5");
  {
    File file = *File::Create(path);
    ASSERT_TRUE(WriteArray<std::int64_t>(file, "/train_iter", {1, 2, 3}, {3}).ok());
    ASSERT_TRUE(WriteArray<double>(file, "/train_loss", {3, kNaN, 1}, {3}).ok());
    ASSERT_TRUE(WriteArray<float>(file, "/loss/mean", {0.5, 0.25}, {2}).ok());
    ASSERT_TRUE(WriteArray<std::int32_t>(file, "/matrix", {1, 2, 3, 4, 5, 6}, {3, 2}).ok());
    ASSERT_TRUE(WriteArray<double>(file, "/scalar", {1}, {}).ok());
    ASSERT_TRUE(WriteArray<double>(file, "/cube", {1, 2, 3}, {3, 1, 1}).ok());
    ASSERT_TRUE(SetAttribute(file, "/", "nodes", std::int64_t{4}).ok());
    const double rate = 0.5;
    ASSERT_GE(H5LTset_attribute_double(file.id(), "/", "lr", &rate, 1), 0);
    ASSERT_TRUE(SetAttribute(file, "/train_loss", "units", "nats").ok());
  }
  const HistoryTable table = Opened(path);
  EXPECT_FALSE(table.is_history());
  EXPECT_TRUE(table.complete());
  EXPECT_EQ(table.draws(), 3);
  EXPECT_EQ(table.metrics().size(), 4u);
  EXPECT_THAT(*table.Column("train_iter"), ElementsAre(1, 2, 3));
  EXPECT_THAT(*table.Column("train_loss"), ElementsAre(3, IsNan(), 1));
  EXPECT_THAT(*table.Column("loss/mean"), ElementsAre(0.5, 0.25, IsNan()));
  EXPECT_THAT(*table.Column("matrix", 1), ElementsAre(2, 4, 6));
  EXPECT_THAT(*table.DrawNumbers(), ElementsAre(0, 1, 2));
  EXPECT_EQ(table.Find("train_loss")->units, "nats");
  EXPECT_THAT(table.attributes(), ElementsAre(Pair("nodes", "4"), Pair("lr", "0.5")));
}

// As netCDF-4 writes numbers with fill_value=-9999, and packed ones. Expected values are those of the CF conventions, by
// hand: packed * scale_factor + add_offset, and none where the packed number is the fill value.
TEST(HistoryTable, ReadsFilledAndPackedNumbersOfAnotherProgram) {
  const std::string path = NewPath("packed.h5");
  {
    File file = *File::Create(path);
    ASSERT_TRUE(WriteArray<float>(file, "/loss", {2.5, -9999, 1.5}, {3}).ok());
    const float none = -9999;
    ASSERT_GE(H5LTset_attribute_float(file.id(), "/loss", "_FillValue", &none, 1), 0);
    ASSERT_TRUE(WriteArray<double>(file, "/accuracy", {0.5, -1, kInf}, {3}).ok());
    const double missing = -1;
    ASSERT_GE(H5LTset_attribute_double(file.id(), "/accuracy", "missing_value", &missing, 1), 0);
    ASSERT_TRUE(WriteArray<std::int16_t>(file, "/dt", {4, -32767, 6}, {3}).ok());
    const short unset = -32767;
    const double scale = 0.25, offset = 10;
    ASSERT_GE(H5LTset_attribute_short(file.id(), "/dt", "_FillValue", &unset, 1), 0);
    ASSERT_GE(H5LTset_attribute_double(file.id(), "/dt", "scale_factor", &scale, 1), 0);
    ASSERT_GE(H5LTset_attribute_double(file.id(), "/dt", "add_offset", &offset, 1), 0);
  }
  const HistoryTable table = Opened(path);
  EXPECT_THAT(*table.Column("loss"), ElementsAre(2.5, IsNan(), 1.5));
  EXPECT_THAT(*table.Column("accuracy"), ElementsAre(0.5, IsNan(), kInf));
  EXPECT_THAT(*table.Column("dt"), ElementsAre(11, IsNan(), 11.5));
  EXPECT_THAT(*table.Rows("dt", 2, 1), ElementsAre(11.5));
}

void MakeScale(const File& file, const std::string& name, const std::string& title) {
  const Handle scale(H5Dopen2(file.id(), name.c_str(), H5P_DEFAULT));
  ASSERT_GE(H5DSset_scale(scale.id(), title.c_str()), 0);
}

void Attach(const File& file, const std::string& array, const std::string& scale, int dimension) {
  const Handle from(H5Dopen2(file.id(), array.c_str(), H5P_DEFAULT));
  const Handle to(H5Dopen2(file.id(), scale.c_str(), H5P_DEFAULT));
  ASSERT_GE(H5DSattach_scale(from.id(), to.id(), dimension), 0);
}

// As xarray writes it through netCDF-4: a coordinate that numbers the draws, and one without values.
TEST(HistoryTable, ReadsDimensionsOfAnotherProgram) {
  const std::string path = NewPath("xarray.h5");
  {
    File file = *File::Create(path);
    ASSERT_TRUE(WriteArray<std::int64_t>(file, "/epoch", {10, 20}, {2}).ok());
    ASSERT_TRUE(WriteArray<float>(file, "/rank", {0, 0, 0}, {3}).ok());
    ASSERT_TRUE(WriteArray<double>(file, "/dt", {1, 2}, {2}).ok());
    ASSERT_TRUE(WriteArray<double>(file, "/dt_rank", {1, 2, 3, 4, 5, 6}, {2, 3}).ok());
    MakeScale(file, "/epoch", "epoch");
    MakeScale(file, "/rank", "This is a netCDF dimension but not a netCDF variable.         3");
    Attach(file, "/dt", "/epoch", 0);
    Attach(file, "/dt_rank", "/epoch", 0);
    Attach(file, "/dt_rank", "/rank", 1);
  }
  const HistoryTable table = Opened(path);
  EXPECT_EQ(table.metrics().size(), 2u);
  EXPECT_THAT(*table.DrawNumbers(), ElementsAre(10, 20));
  EXPECT_EQ(table.Find("dt_rank")->dimension, "rank");
  EXPECT_THAT(*table.Column("dt_rank", 2), ElementsAre(3, 6));
}

// A file of another program with coordinate `step`, 10, 20, 30, 40, and a metric along it.
File FileAlongSteps(const std::string& path) {
  File file = *File::Create(path);
  EXPECT_TRUE(WriteArray<std::int64_t>(file, "/step", {10, 20, 30, 40}, {4}).ok());
  EXPECT_TRUE(WriteArray<double>(file, "/loss", {4, 3, 2, 1}, {4}).ok());
  MakeScale(file, "/step", "step");
  Attach(file, "/loss", "/step", 0);
  return file;
}

void AddAlong(File& file, const std::string& array, const std::vector<double>& values,
              const std::string& scale, const std::vector<double>& numbers) {
  const std::int64_t rows = numbers.size(), width = values.size() / rows;
  std::vector<std::int64_t> shape = {rows};
  if (width > 1) shape.push_back(width);
  ASSERT_TRUE(WriteArray<double>(file, "/" + scale, numbers, {rows}).ok());
  ASSERT_TRUE(WriteArray<double>(file, "/" + array, values, shape).ok());
  MakeScale(file, "/" + scale, scale);
  Attach(file, "/" + array, "/" + scale, 0);
}

// As xarray writes metrics of evaluations, which come first in its file.
TEST(HistoryTable, ValuesAlongAnotherCoordinateAreAtTheDrawsOfTheSameNumber) {
  const std::string path = NewPath("evaluations.h5");
  {
    File file = FileAlongSteps(path);
    AddAlong(file, "eval_loss", {0.5, 0.25}, "eval_step", {20, 40});
    AddAlong(file, "eval_parts", {1, 2, 3, 4, 5, 6}, "part_step", {10, 20, 40});
    // Without a coordinate, but one for each draw.
    ASSERT_TRUE(WriteArray<double>(file, "/lr", {5, 6, 7, 8}, {4}).ok());
  }
  const HistoryTable table = Opened(path);
  EXPECT_EQ(table.draws(), 4);
  EXPECT_TRUE(table.left_out().empty());
  EXPECT_THAT(*table.DrawNumbers(), ElementsAre(10, 20, 30, 40));
  EXPECT_EQ(table.Find("loss")->coordinate, "");
  EXPECT_EQ(table.Find("eval_loss")->coordinate, "eval_step");
  EXPECT_THAT(*table.Column("loss"), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(*table.Column("lr"), ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(*table.Column("eval_loss"), ElementsAre(IsNan(), 0.5, IsNan(), 0.25));
  EXPECT_THAT(*table.Rows("eval_loss", 1, 2), ElementsAre(0.5, IsNan()));
  EXPECT_THAT(*table.Rows("eval_loss", 2, 1), ElementsAre(IsNan()));
  EXPECT_THAT(*table.Column("eval_parts", 1), ElementsAre(2, 4, IsNan(), 6));
  EXPECT_THAT(*table.Rows("eval_parts", 1, 3), ElementsAre(3, 4, IsNan(), IsNan(), 5, 6));
}

TEST(HistoryTable, ArraysWithoutPlacesAmongTheDrawsAreLeftOut) {
  const std::string path = NewPath("left_out.h5");
  {
    File file = FileAlongSteps(path);
    AddAlong(file, "after", {0.5, 0.25}, "after_step", {40, 50});
    AddAlong(file, "between", {1, 2}, "between_step", {20, 25});
    AddAlong(file, "twice", {1, 2}, "twice_step", {20, 20});
    AddAlong(file, "hours", {1, 2}, "hours_step", {10, 20});
    ASSERT_TRUE(SetAttribute(file, "/hours_step", "units", "h").ok());
    // A dimension without numbers, and no dimension scale.
    AddAlong(file, "bare", {1, 2, 3}, "bare_index", {0, 0, 0});
    MakeScale(file, "/bare_index", "This is a netCDF dimension but not a netCDF variable.         3");
    ASSERT_TRUE(WriteArray<double>(file, "/plain", {1, 2}, {2}).ok());
  }
  const HistoryTable table = Opened(path);
  EXPECT_EQ(table.draws(), 4);
  ASSERT_EQ(table.metrics().size(), 1u);
  EXPECT_EQ(table.metrics()[0].name, "loss");
  std::vector<std::pair<std::string, std::string>> reasons;
  for (const LeftOutArray& array : table.left_out()) reasons.emplace_back(array.name, array.reason);
  EXPECT_THAT(
      reasons,
      testing::UnorderedElementsAre(
          Pair("after", "its coordinate after_step has 50, which step, that of the draws, has not"),
          Pair("between", "its coordinate between_step has 25, which step, that of the draws, has not"),
          Pair("twice", "its coordinate twice_step or that of the draws, step, does not ascend strictly"),
          Pair("hours", "its coordinate hours_step is in \"h\" and step, that of the draws, in \"\""),
          Pair("bare", "no coordinate tells at which of the 4 draws its 3 values are"),
          Pair("plain", "no coordinate tells at which of the 4 draws its 2 values are")));
}

TEST(HistoryTable, UnusableFilesAreNamedInOneLine) {
  EXPECT_THAT(Refusal(NewPath("absent.h5")), HasSubstr("No such file"));
  const std::string path = NewPath("bad.h5");
  std::ofstream(path) << "text";
  EXPECT_THAT(Refusal(path), HasSubstr("not an HDF5 file"));
  ASSERT_TRUE(File::Create(path)->Close().ok());
  EXPECT_THAT(Refusal(path), HasSubstr("without metrics"));
  {
    File file = *File::Create(path);
    ASSERT_TRUE(WriteArray<double>(file, "/loss", {}, {0}).ok());
  }
  EXPECT_THAT(Refusal(path), HasSubstr("holds no draws yet"));
}

TEST(HistoryTable, TruncatedAndNewerHistoriesAreNamed) {
  const std::string path = NewPath("newer.h5");
  auto history = Started(path);
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(history->Append({{"loss", 1.0 * i}}).ok());
  ASSERT_TRUE(history->Close().ok());
  const std::string whole = *ReadWholeFile(path);
  for (const std::size_t size : {whole.size() / 2, whole.size() - 1, std::size_t{100}}) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    EXPECT_THAT(Refusal(path), HasSubstr("truncated")) << size << " of " << whole.size() << " bytes";
  }
  std::ofstream(path, std::ios::binary) << whole;
  {
    File file = *File::Open(path, File::Mode::kReadWrite);
    ASSERT_TRUE(SetAttribute(file, "/", "format_version", std::int64_t{99}).ok());
  }
  EXPECT_THAT(Refusal(path), HasSubstr("99"));
}

}  // namespace
}  // namespace plait::data
