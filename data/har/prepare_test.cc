#include "data/har/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_join.h"
#include "data/har/recordings.h"
#include "data/har/synthetic.h"
#include "data/har/text.h"
#include "data/testing/har_files.h"

namespace plait::data {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
namespace fs = std::filesystem;

class PrepareHarTest : public testing::Test {
 protected:
  PrepareHarTest() {
    fs::remove_all(root_);
    WriteHarText(SmallHarSet(), text_);
  }
  HarOptions Text() const { return {.data_dir = text_, .cache_dir = cache_}; }
  HarOptions Cache() const { return {.cache_dir = cache_}; }
  void PutRecordings(int subjects) {
    fs::create_directories(cache_);
    ASSERT_TRUE(WriteRecordings(cache_ + "/hapt_recordings.bin", MadeRecordings(subjects)).ok());
  }

  const std::string root_ =
      testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string cache_ = root_ + "/a new folder/cache";
  const std::string text_ = root_ + "/UCI HAR Dataset";
};

TEST_F(PrepareHarTest, TextIsPreparedOnceAndAgainWhenItChanges) {
  const PreparedHar first = *PrepareHar(Text());
  EXPECT_THAT(absl::StrJoin(first.notes, "|"), HasSubstr("Prepared 3 + 3 sequences"));
  EXPECT_EQ(ReadPrepared(first.path, {})->train.x, SmallHarSet().train.x);
  EXPECT_THAT(PrepareHar(Text())->notes, IsEmpty()) << "it was there";
  std::ofstream(text_ + "/train/y_train.txt") << "4\n5\n6\n\n";
  EXPECT_THAT(OpenHar(Text(), {})->train.y, testing::ElementsAre(3, 4, 5));
}

TEST_F(PrepareHarTest, AGivenFolderIsTheOnlyOneTried) {
  PutRecordings(3);
  fs::remove(text_ + "/test/y_test.txt");
  const absl::Status status = PrepareHar(Text()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("y_test.txt"));
  EXPECT_FALSE(PrepareHar({.data_dir = root_ + "/none", .cache_dir = cache_}).ok());
}

TEST_F(PrepareHarTest, RecordingsBeforeTheStandIn) {
  const SequenceSet stand_in = *OpenHar(Cache(), {});
  EXPECT_TRUE(stand_in.synthetic);
  EXPECT_THAT(stand_in.description(), StartsWith("synthetic"));
  PutRecordings(3);
  const SequenceSet derived = *OpenHar(Cache(), {});
  EXPECT_FALSE(derived.synthetic);
  EXPECT_EQ(derived.train.x, WindowsOf(MadeRecordings(3)).train.x);
  fs::remove(cache_ + "/hapt_recordings.bin");
  EXPECT_EQ(OpenHar(Cache(), {})->train.x, derived.train.x) << "what was prepared stays";
  EXPECT_TRUE(OpenHar({.cache_dir = cache_, .synthetic = true}, {})->synthetic);
}

TEST_F(PrepareHarTest, NewRecordingsArePreparedAnew) {
  PutRecordings(3);
  const std::int64_t before = OpenHar(Cache(), {})->train.samples();
  PutRecordings(5);
  EXPECT_GT(OpenHar(Cache(), {})->train.samples(), before);
}

TEST_F(PrepareHarTest, DamagedCacheIsMadeAnewAndSaysSo) {
  const std::string path = PrepareHar(Text())->path;
  for (const std::string& content : {std::string("not HDF5"), std::string()}) {
    std::ofstream(path, std::ios::trunc) << content;
    const PreparedHar again = *PrepareHar(Text());
    ASSERT_EQ(again.notes.size(), 2u);
    EXPECT_THAT(again.notes[0], HasSubstr("prepared again"));
    EXPECT_TRUE(ReadPrepared(path, {}).ok());
  }
}

TEST_F(PrepareHarTest, AFileThatTheUserNamesIsNeverReplaced) {
  const std::string own = PrepareHar(Text())->path;
  EXPECT_EQ(OpenHar({.data_dir = own, .cache_dir = cache_}, {})->train.x, SmallHarSet().train.x);
  std::ofstream(own, std::ios::trunc) << "not HDF5";
  EXPECT_EQ(PrepareHar({.data_dir = own, .cache_dir = cache_}).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(fs::file_size(own), 8u);
}

TEST_F(PrepareHarTest, DamagedRecordingsAreAnError) {
  PutRecordings(2);
  fs::resize_file(cache_ + "/hapt_recordings.bin", 5000);
  const absl::Status status = PrepareHar(Cache()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("fetch_recordings.py"));
}

TEST_F(PrepareHarTest, ManyProcessesPrepareOnce) {
  PutRecordings(9);
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const absl::StatusOr<PreparedHar> prepared = PrepareHar(Cache());
      _exit(prepared.ok() ? static_cast<int>(prepared->notes.size()) : 100);
    }
    children.push_back(child);
  }
  int made = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    made += WEXITSTATUS(status);
  }
  EXPECT_EQ(made, 1) << "processes that had to prepare (100 for each that failed)";
}

TEST_F(PrepareHarTest, CacheFolderThatCannotBeMadeIsNamed) {
  std::ofstream(root_ + "/file") << "x";
  const absl::Status status = PrepareHar({.cache_dir = root_ + "/file/cache"}).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr(root_ + "/file/cache"));
  EXPECT_FALSE(PrepareHar({.data_dir = text_, .cache_dir = cache_, .synthetic = true}).ok());
}

// The stand-in can be learnt: the nearest of the six class means of simple features (mean and energy per
// channel) names the class of most test windows. One in six would be right by chance.
TEST(SyntheticHar, ClassesCanBeTold) {
  const SequenceSet set = SyntheticHar(600, 300, 7);
  EXPECT_EQ(set.train.x, SyntheticHar(600, 300, 7).train.x);
  EXPECT_NE(set.train.x, SyntheticHar(600, 300, 8).train.x);
  const auto features = [](const SequenceSplit& split, std::int64_t sample) {
    std::vector<double> result(18);
    for (std::int64_t i = 0; i < 128 * 9; ++i) {
      const double value = split.x[sample * 128 * 9 + i];
      result[i % 9] += value / 128;
      result[9 + i % 9] += value * value / 128;
    }
    return result;
  };
  std::vector<std::vector<double>> means(6, std::vector<double>(18));
  for (std::int64_t i = 0; i < 600; ++i) {
    const std::vector<double> feature = features(set.train, i);
    for (int k = 0; k < 18; ++k) means[set.train.y[i]][k] += feature[k] / 100;
  }
  int right = 0;
  for (std::int64_t i = 0; i < 300; ++i) {
    const std::vector<double> feature = features(set.test, i);
    double best = 1e9;
    std::int64_t label = -1;
    for (std::int64_t c = 0; c < 6; ++c) {
      double distance = 0;
      for (int k = 0; k < 18; ++k) distance += std::pow(feature[k] - means[c][k], 2);
      if (distance < best) best = distance, label = c;
    }
    right += label == set.test.y[i];
  }
  EXPECT_GT(right, 180);
}

}  // namespace
}  // namespace plait::data
