#include "data/har/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "data/hdf5/atomic_file.h"
#include "data/testing/har_files.h"

namespace plait::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

std::string MadeFolder(const std::string& name) {
  const std::string folder = testing::TempDir() + "/" + name;
  fs::remove_all(folder);
  WriteHarText(SmallHarSet(), folder);
  return folder;
}

// 9 significant digits name a float exactly.
TEST(HarText, ArchiveStyleFilesComeBackExactly) {
  const SequenceSet expected = SmallHarSet();
  const SequenceSet set = *ReadHarText(MadeFolder("exact"));
  EXPECT_EQ(set.train.x, expected.train.x);
  EXPECT_EQ(set.test.x, expected.test.x);
  EXPECT_EQ(set.train.y, expected.train.y);
  EXPECT_EQ(set.test.y, expected.test.y);
  EXPECT_EQ(set.train.subject, expected.train.subject);
  EXPECT_EQ(set.class_names[5], "LAYING");
  EXPECT_FALSE(set.synthetic);
}

TEST(HarText, ChannelOrderIsBodyAccBodyGyroTotalAcc) {
  EXPECT_THAT(HarChannelNames(),
              ElementsAre("body_acc_x", "body_acc_y", "body_acc_z", "body_gyro_x", "body_gyro_y",
                          "body_gyro_z", "total_acc_x", "total_acc_y", "total_acc_z"));
}

TEST(HarText, FolderAboveCarriageReturnsEmptyEndAndMissingSubjectsAreAccepted) {
  const std::string above = testing::TempDir() + "/above";
  fs::remove_all(above);
  WriteHarText(SmallHarSet(), above + "/UCI HAR Dataset");
  const std::string folder = above + "/UCI HAR Dataset";
  fs::remove(folder + "/train/subject_train.txt");
  const std::string y = folder + "/train/y_train.txt";
  const std::string text = absl::StrReplaceAll(*ReadWholeFile(y), {{"\n", " \r\n"}});
  std::ofstream(y) << text << "\n\r\n  \n";
  const absl::StatusOr<SequenceSet> set = ReadHarText(above);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->train.y, SmallHarSet().train.y);
  EXPECT_THAT(set->train.subject, ElementsAre(0, 0, 0));
}

struct Damage {
  std::string name;
  std::string file;
  std::function<std::string(std::string)> edit;  // of the file's text
  std::vector<std::string> message;              // after the file's name
};

std::string Replace(std::string text, std::size_t line, std::size_t column, const std::string& by) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  std::vector<std::string> words = absl::StrSplit(lines[line], ' ', absl::SkipEmpty());
  words[column] = by;
  lines[line] = absl::StrJoin(words, " ");
  return absl::StrJoin(lines, "\n");
}

TEST(HarText, DamageIsNamedByFileLineAndExpectation) {
  const std::string signal = "/test/Inertial Signals/body_gyro_y_test.txt";
  const std::string first = "/train/Inertial Signals/body_acc_x_train.txt";
  const std::vector<Damage> damages = {
      {"word",
       signal,
       [](std::string t) { return Replace(t, 1, 16, "oops"); },
       {":2: ", "column 17", "\"oops\""}},
      {"glued",
       signal,
       [](std::string t) { return Replace(t, 1, 3, "1.5x"); },
       {":2: ", "column 4", "\"1.5x\""}},
      {"nan",
       first,
       [](std::string t) { return Replace(t, 0, 0, "nan"); },
       {":1: ", "finite number", "\"nan\""}},
      {"huge", first, [](std::string t) { return Replace(t, 0, 0, "1e999"); }, {":1: ", "finite number"}},
      {"short",
       first,
       [](std::string t) { return Replace(t, 2, 5, ""); },
       {":3: expected 128 numbers, found 127"}},
      {"long",
       signal,
       [](std::string t) { return Replace(t, 2, 5, "1 2"); },
       {":3: expected 128 numbers, found 129"}},
      {"cut in a line",
       signal,
       [](std::string t) { return t.substr(0, t.size() - 500); },
       {":3: expected 128"}},
      {"cut at a line",
       signal,
       [](std::string t) { return t.substr(0, t.find('\n') + 1); },
       {": expected 3 lines as in the other files, found 1"}},
      {"line more",
       signal,
       [](std::string t) { return t + t.substr(0, t.find('\n') + 1); },
       {": expected 3 lines as in the other files, found 4"}},
      {"empty", first, [](std::string) { return ""; }, {": expected at least one line, found 0"}},
      {"label 0",
       "/train/y_train.txt",
       [](std::string) { return "1\n0\n2\n"; },
       {":2: expected a label 1..6, found 0"}},
      {"label 7",
       "/test/y_test.txt",
       [](std::string) { return "1\n2\n7\n"; },
       {":3: expected a label 1..6, found 7"}},
      {"label 1.5",
       "/test/y_test.txt",
       [](std::string) { return "1\n1.5\n2\n"; },
       {":2: expected a label 1..6", "1.5"}},
      {"two labels",
       "/test/y_test.txt",
       [](std::string) { return "1\n1 2\n2\n"; },
       {":2: ", "found 2 numbers"}},
      {"few labels",
       "/test/y_test.txt",
       [](std::string) { return "1\n2\n"; },
       {": expected 3 lines", "found 2"}},
      {"subject",
       "/test/subject_test.txt",
       [](std::string) { return "1\n2\n31\n"; },
       {":3: ", "1..30", "found 31"}},
  };
  for (const Damage& damage : damages) {
    SCOPED_TRACE(damage.name);
    const std::string folder = MadeFolder("damaged");
    const std::string text = *ReadWholeFile(folder + damage.file);
    std::ofstream(folder + damage.file) << damage.edit(text);
    const absl::Status status = ReadHarText(folder).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    const std::string message(status.message());
    EXPECT_THAT(message, HasSubstr(folder + damage.file));
    EXPECT_THAT(message, Not(HasSubstr("\n")));
    for (const std::string& part : damage.message) EXPECT_THAT(message, HasSubstr(part));
  }
}

TEST(HarText, MissingFilesAndFoldersAreNamed) {
  const std::string folder = MadeFolder("missing");
  EXPECT_THAT(std::string(ReadHarText(folder + "/train").status().message()),
              HasSubstr("no UCI HAR data here"));
  fs::remove(folder + "/test/Inertial Signals/total_acc_z_test.txt");
  const absl::Status status = ReadHarText(folder).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("total_acc_z_test.txt"));
}

std::vector<std::int64_t> Counts(const std::vector<std::int64_t>& labels) {
  std::vector<std::int64_t> counts(kHarClasses);
  for (const std::int64_t label : labels) ++counts.at(label);
  return counts;
}

// The windows of the public archive that are at hand: label counts as published, signals within their
// physical bounds. Where they are absent the same checks run on the small made set.
TEST(HarText, RealWindowsHaveTheirPublishedCounts) {
  const std::optional<std::string> real = RealDataFolder();
  const std::string folder =
      real ? Unpack(*real + "/uci-har/UCI_HAR_subset.tar.xz") : MadeFolder("in_place_of_the_real_ones");
  const absl::StatusOr<SequenceSet> set = ReadHarText(folder);
  ASSERT_TRUE(set.ok()) << set.status();
  if (real) {
    EXPECT_THAT(Counts(set->train.y), ElementsAre(400, 350, 322, 420, 449, 459));
    EXPECT_THAT(Counts(set->test.y), ElementsAre(496, 471, 420, 491, 532, 537));
    // First and last number of body_acc_x_train.txt as the file shows them.
    EXPECT_EQ(set->train.x.front(), -0.003655f);
    EXPECT_EQ(set->train.x[kHarChannels], -0.004026f);
  } else {
    EXPECT_THAT(Counts(set->train.y), ElementsAre(1, 1, 1, 0, 0, 0));
    EXPECT_THAT(Counts(set->test.y), ElementsAre(0, 0, 0, 1, 1, 1));
  }
  for (const SequenceSplit* split : {&set->train, &set->test}) {
    EXPECT_EQ(split->x.size(), split->y.size() * kHarSteps * kHarChannels);
    for (const float value : split->x) ASSERT_LT(std::abs(value), 20.0f) << "g or rad/s of a person walking";
  }
}

}  // namespace
}  // namespace plait::data
