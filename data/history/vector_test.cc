// Vectors per draw, and what History makes of files that are not as it expects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5_hl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>

#include "data/hdf5/atomic_file.h"
#include "data/hdf5/file.h"
#include "data/history/history.h"
#include "data/history/history_file.h"

namespace plait::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;
namespace fs = std::filesystem;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNever = 1e6;
// By which a process grows that writes an endless history. The address sanitizer keeps freed memory for a while.
#if defined(__SANITIZE_ADDRESS__)
constexpr long kMostMemoryKib = 700 * 1024;
#else
constexpr long kMostMemoryKib = 40 * 1024;
#endif

std::int64_t PeakMemoryKib() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

std::string NewPath(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name;
  for (const char* suffix : {"", ".journal"}) fs::remove(path + suffix);
  return path;
}

std::unique_ptr<History> Started(const std::string& path) {
  return *History::Create(path, {.commit_seconds = kNever});
}

std::vector<double> Column(const std::string& path, const std::string& name) {
  return *ReadArray<double>(*OpenHistoryFile(path), "/" + name);
}

Metric VectorMetric(const std::string& name, std::int64_t length, const std::string& dimension = "") {
  Metric metric{name, "s", "of " + name};
  metric.length = length;
  metric.dimension = dimension;
  metric.statistic = "value of each rank";
  return metric;
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(Vectors, LieAlongDimensionsOfTheirOwn) {
  const std::string path = NewPath("vectors.h5");
  auto history = Started(path);
  ASSERT_TRUE(history->Declare(VectorMetric("dt_per_rank", 3, "rank")).ok());
  ASSERT_TRUE(history->Declare(VectorMetric("loss_per_rank", 3, "rank")).ok());
  ASSERT_TRUE(history->Append({{"loss", 1}}).ok());
  ASSERT_TRUE(history->Append({}, {{"dt_per_rank", {1.0, kNaN, -kInf}}, {"norms", {5.0, 6.0}}}).ok());
  ASSERT_TRUE(history->Commit().ok());
  ASSERT_TRUE(history->Append({}, {{"loss_per_rank", {7.0, 8.0, 9.0}}, {"one", {4.0}}}).ok());
  ASSERT_TRUE(history->Close().ok());
  EXPECT_THAT(Column(path, "dt_per_rank"),
              ElementsAre(IsNan(), IsNan(), IsNan(), 1, IsNan(), -kInf, IsNan(), IsNan(), IsNan()));
  EXPECT_THAT(Column(path, "loss_per_rank"),
              ElementsAre(IsNan(), IsNan(), IsNan(), IsNan(), IsNan(), IsNan(), 7, 8, 9));
  EXPECT_THAT(Column(path, "norms"), ElementsAre(IsNan(), IsNan(), 5, 6, IsNan(), IsNan()));
  EXPECT_THAT(Column(path, "one"), ElementsAre(IsNan(), IsNan(), 4));
  const File file = *File::Open(path);
  EXPECT_THAT(*ArrayShape(file, "/one"), ElementsAre(3, 1)) << "a vector of one number is a vector";
  EXPECT_THAT(*ReadArray<std::int64_t>(file, "/rank"), ElementsAre(0, 1, 2));
  EXPECT_THAT(*ReadArray<std::int64_t>(file, "/norms_index"), ElementsAre(0, 1));
  const Handle rank(H5Dopen2(file.id(), "/rank", H5P_DEFAULT)),
      draw(H5Dopen2(file.id(), "/draw", H5P_DEFAULT));
  EXPECT_GT(H5DSis_scale(rank.id()), 0);
  for (const char* name : {"/dt_per_rank", "/loss_per_rank"}) {
    const Handle variable(H5Dopen2(file.id(), name, H5P_DEFAULT));
    EXPECT_GT(H5DSis_attached(variable.id(), draw.id(), 0), 0) << name;
    EXPECT_GT(H5DSis_attached(variable.id(), rank.id(), 1), 0) << name;
  }
  const std::vector<Metric> metrics = *MetricsOf(file);
  std::map<std::string, Metric> by_name;
  for (const Metric& metric : metrics) by_name[metric.name] = metric;
  EXPECT_EQ(by_name.size(), 5u) << "dimensions are no metrics";
  EXPECT_EQ(by_name["dt_per_rank"].length, 3);
  EXPECT_EQ(by_name["dt_per_rank"].dimension, "rank");
  EXPECT_EQ(by_name["dt_per_rank"].statistic, "value of each rank");
  EXPECT_EQ(by_name["norms"].dimension, "norms_index");
}

TEST(Vectors, OfAnotherLengthOrNameAreRefusedAndTheRunGoesOn) {
  auto history = Started(NewPath("lengths.h5"));
  ASSERT_TRUE(history->Declare(VectorMetric("a", 3, "rank")).ok());
  EXPECT_THAT(Message(history->Append({}, {{"a", {1.0, 2.0}}})), HasSubstr("a: length 2"));
  EXPECT_THAT(Message(history->Append({{"a", 1}})), HasSubstr("3 before"));
  EXPECT_THAT(Message(history->Append({{"rank", 1}})), HasSubstr("name of a dimension"));
  EXPECT_THAT(Message(history->Append({}, {{"e", {}}})), HasSubstr("empty vector"));
  EXPECT_THAT(Message(history->Declare(VectorMetric("b", 4, "rank"))), HasSubstr("dimension rank has 3"));
  EXPECT_THAT(Message(history->Declare(VectorMetric("b", 4, "a"))), HasSubstr("name of a metric"));
  EXPECT_THAT(Message(history->Declare(VectorMetric("b", 4, "b"))), HasSubstr("name of a metric"));
  EXPECT_THAT(Message(history->Declare(VectorMetric("b", 4, "x y"))), HasSubstr("\"x y\""));
  EXPECT_FALSE(history->Declare(VectorMetric("b", kLongestVector + 1)).ok());
  EXPECT_EQ(history->draws(), 0);
  EXPECT_TRUE(history->Append({{"b", 1}}, {{"a", {1.0, 2.0, 3.0}}}).ok());
  EXPECT_FALSE(history->Append({}, {{"b", {1.0}}}).ok()) << "a number before";
  // Fits one by one, but the draw would be more than the journal takes.
  const std::vector<double> longest(kLongestVector);
  std::vector<Vector> many;
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) names.push_back("long" + std::to_string(i));
  for (const std::string& name : names) many.push_back({name, longest});
  EXPECT_EQ(history->Append({}, many).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(history->Append({}, absl::MakeConstSpan(many).first(2)).ok());
  EXPECT_TRUE(history->Close().ok());
}

TEST(Vectors, OfAResumedFileKeepTheirLength) {
  const std::string path = NewPath("resumed.h5");
  auto history = Started(path);
  ASSERT_TRUE(history->Declare(VectorMetric("dt_per_rank", 2, "rank")).ok());
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(history->Append({}, {{"dt_per_rank", {1.0 * i, 10.0 * i}}}).ok());
  ASSERT_TRUE(history->Close().ok());
  auto resumed = *History::Resume(path, 2, {.commit_seconds = kNever});
  EXPECT_THAT(Message(resumed->Declare(VectorMetric("dt_per_rank", 4, "rank"))), HasSubstr("but 2 before"));
  EXPECT_THAT(Message(resumed->Append({}, {{"dt_per_rank", {1.0, 2.0, 3.0, 4.0}}})),
              HasSubstr("but 2 before"));
  EXPECT_THAT(Message(resumed->Declare(VectorMetric("other", 4, "rank"))), HasSubstr("dimension rank has 2"));
  ASSERT_TRUE(resumed->Append({}, {{"dt_per_rank", {7.0, 8.0}}}).ok());
  ASSERT_TRUE(resumed->Close().ok());
  EXPECT_THAT(Column(path, "dt_per_rank"), ElementsAre(0, 0, 1, 10, 7, 8));
}

// More than a block of draws (4096) and of numbers (2^20), narrow and wide.
TEST(Vectors, CrossBlocksAndCommits) {
  const std::string path = NewPath("blocks.h5");
  auto history = Started(path);
  constexpr int kDraws = 5000, kWide = 400;
  std::vector<double> wide(kWide);
  for (int i = 0; i < kDraws; ++i) {
    for (int k = 0; k < kWide; ++k) wide[k] = i * 1000.0 + k;
    const bool has_wide = i % 2 == 1;
    const double pair[] = {1.0 * i, -1.0 * i};
    std::vector<Vector> vectors = {{"pair", pair}};
    if (has_wide) vectors.push_back({"wide", wide});
    ASSERT_TRUE(history->Append({{"loss", 1.0 * i}}, vectors).ok());
    if (i == 700) {
      ASSERT_TRUE(history->Commit().ok());
    }
  }
  ASSERT_TRUE(history->Close().ok());
  const std::vector<double> loss = Column(path, "loss"), pair = Column(path, "pair"),
                            stored = Column(path, "wide");
  ASSERT_EQ(loss.size(), std::size_t{kDraws});
  ASSERT_EQ(pair.size(), std::size_t{2 * kDraws});
  ASSERT_EQ(stored.size(), std::size_t{kDraws} * kWide);
  for (int i = 0; i < kDraws; ++i) {
    ASSERT_EQ(loss[i], i);
    ASSERT_EQ(pair[2 * i + 1], -i);
    const double last = stored[i * kWide + kWide - 1];
    ASSERT_TRUE(i % 2 == 1 ? last == i * 1000.0 + kWide - 1 : std::isnan(last)) << i;
  }
}

// 120 MB of numbers through one process, whose memory grows by less than a third of that: one block (8 MB, doubled
// while it grows) and HDF5's caches.
TEST(Vectors, OfAnEndlessRunNeedNoMoreMemory) {
  const std::string path = NewPath("endless.h5");
  const pid_t child = fork();
  if (child == 0) {
    const std::int64_t before = PeakMemoryKib();
    auto history = *History::Create(path, {.commit_seconds = kNever});
    std::vector<double> values(256);
    for (int i = 0; i < 60'000; ++i) {
      values[i % values.size()] = i;
      if (!history->Append({{"loss", 1.0 * i}}, {{"v", values}}).ok()) _exit(1);
    }
    if (!history->Close().ok()) _exit(2);
    _exit(PeakMemoryKib() - before < kMostMemoryKib ? 0 : 3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Column(path, "loss").back(), 59'999);
  fs::remove(path);
}

TEST(BadFiles, TruncatedHistoryIsNamed) {
  const std::string path = NewPath("truncated.h5");
  auto history = Started(path);
  for (int i = 0; i < 3000; ++i) ASSERT_TRUE(history->Append({{"loss", 1.0 * i}}).ok());
  ASSERT_TRUE(history->Close().ok());
  const std::string whole = *ReadWholeFile(path);
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{4}, std::size_t{96}, whole.size() / 2, whole.size() - 1}) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, length);
    const absl::Status status = History::Resume(path, 0, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << length;
    EXPECT_THAT(Message(status), HasSubstr(path));
    EXPECT_EQ(Message(status).find('\n'), std::string::npos);
    EXPECT_FALSE(History::Create(path, {}).ok()) << "damaged, but somebody's: not overwritten";
  }
}

// As the first version of the format wrote them: scalars only, also in the journal.
TEST(BadFiles, HistoriesOfTheFirstVersionAreGoneOnWith) {
  const std::string path = NewPath("first_version.h5");
  auto history = Started(path);
  ASSERT_TRUE(history->Append({{"loss", 1}}).ok());
  history.reset();  // not complete
  {
    File file = *File::Open(path, File::Mode::kReadWrite);
    ASSERT_TRUE(SetAttribute(file, "/", "format_version", std::int64_t{1}).ok());
  }
  const auto record = [](std::string payload) {
    const std::uint32_t prefix[2] = {
        static_cast<std::uint32_t>(payload.size()),
        static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(payload.data()), payload.size()))};
    return std::string(reinterpret_cast<const char*>(prefix), 8) + payload;
  };
  using namespace std::string_literals;
  const std::int64_t draw = 1;
  const double value = 2.5;
  std::string metric = "M\0\0\0\0loss\0s\0the loss\0"s, number = "D"s;
  number.append(reinterpret_cast<const char*>(&draw), 8).append(4, '\0');
  number.append(reinterpret_cast<const char*>(&value), 8);
  std::ofstream(path + ".journal", std::ios::binary) << "PLTJRNL1" << record(metric) << record(number);
  auto resumed = *History::Resume(path, 2, {.commit_seconds = kNever});
  ASSERT_TRUE(resumed->Append({}, {{"v", {1.0, 2.0}}}).ok());
  ASSERT_TRUE(resumed->Close().ok());
  EXPECT_THAT(Column(path, "loss"), ElementsAre(1, 2.5, IsNan()));
  EXPECT_THAT(Column(path, "v"), ElementsAre(IsNan(), IsNan(), IsNan(), IsNan(), 1, 2));
  EXPECT_EQ(*IntAttribute(*File::Open(path), "/", "format_version"), 3);
}

}  // namespace
}  // namespace plait::data
