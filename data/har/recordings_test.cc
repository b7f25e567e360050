#include "data/har/recordings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "data/har/text.h"
#include "data/hdf5/atomic_file.h"
#include "data/testing/har_files.h"

namespace plait::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two designs of the same filter differ by up to 32 eps in a coefficient; the slow filter amplifies a
// relative change of its coefficients by up to 1 / prod |1 - pole| = 1 / sum(b) = 2e4, on values up to 3: 32
// * 2.2e-16 * 2e4 * 3. It shows where the difference of signal and gravity passes through zero.
constexpr double kFilterRounding = 4e-10;

// Numbers are equal to within half a unit of the `digits`-th digit of the text, and the float's own rounding.
void ExpectSameAsText(const SequenceSplit& derived, const SequenceSplit& text, int digits) {
  ASSERT_EQ(derived.x.size(), text.x.size());
  EXPECT_EQ(derived.y, text.y);
  EXPECT_EQ(derived.subject, text.subject);
  const double relative = 0.5 * std::pow(10.0, 1 - digits) + 2 * 1.2e-7;
  std::int64_t different = 0;
  for (std::size_t i = 0; i < text.x.size(); ++i) {
    different += std::abs(derived.x[i] - text.x[i]) > relative * std::abs(text.x[i]) + kFilterRounding;
  }
  EXPECT_EQ(different, 0) << "of " << text.x.size();
}

// Direct form I in long double, written down from the difference equation; coefficients as SciPy gives them.
std::vector<long double> Filtered(const std::vector<long double>& x, const std::vector<long double>& b,
                                  const std::vector<long double>& a) {
  std::vector<long double> y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t k = 0; k < b.size() && k <= i; ++k)
      y[i] += b[k] * x[i - k] - (k > 0 ? a[k] * y[i - k] : 0.0L);
  }
  return y;
}

std::vector<long double> Total(const std::vector<double>& raw) {
  std::vector<long double> median(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    std::vector<double> near = {i > 0 ? raw[i - 1] : 0.0, raw[i], i + 1 < raw.size() ? raw[i + 1] : 0.0};
    std::sort(near.begin(), near.end());
    median[i] = near[1];
  }
  return Filtered(median,
                  {0.5276243825019432L, 1.5828731475058295L, 1.5828731475058295L, 0.5276243825019432L},
                  {1.0L, 1.7600418803431688L, 1.1828932620378303L, 0.2780599176345463L});
}

TEST(HarSignals, EqualTheDifferenceEquations) {
  const Recording recording = MadeRecordings(1).all[0];
  const std::array<std::vector<double>, 9> signals = HarSignals(recording, 50.0);
  for (int axis = 0; axis < 3; ++axis) {
    const std::vector<long double> total = Total(recording.signal[axis]);
    const std::vector<long double> gravity = Filtered(
        total,
        {6.4518491290909294e-06L, 1.9355547387272787e-05L, 1.9355547387272787e-05L, 6.4518491290909294e-06L},
        {1.0L, -2.9246062354506974L, 2.852027818593894L, -0.9273699683501638L});
    const std::vector<long double> gyro = Total(recording.signal[3 + axis]);
    for (std::size_t i = 0; i < total.size(); ++i) {
      ASSERT_NEAR(signals[axis][i], total[i] - gravity[i], kFilterRounding) << i;
      ASSERT_NEAR(signals[3 + axis][i], gyro[i], 1e-12) << i;
      ASSERT_NEAR(signals[6 + axis][i], total[i], 1e-12) << i;
    }
  }
}

// Each of the six segments of 248 + 40 s rows gives floor((length - 128) / 64) + 1 windows (subject 5: the
// last one ends with its segment); label 7 and the unlabelled rows none; subjects 2 and 4 are for testing.
TEST(WindowsOf, CountsOrderAndSplit) {
  const Recordings recordings = MadeRecordings(5);
  const SequenceSet set = WindowsOf(recordings);
  std::vector<std::int64_t> train_subjects, test_subjects, train_labels;
  for (std::int64_t subject = 1; subject <= 5; ++subject) {
    const std::int64_t per_segment = (248 + 40 * subject - 128) / 64 + 1;
    for (std::int64_t label = 0; label < 6; ++label) {
      for (std::int64_t i = 0; i < per_segment; ++i) {
        (subject == 2 || subject == 4 ? test_subjects : train_subjects).push_back(subject);
        if (subject != 2 && subject != 4) train_labels.push_back(label);
      }
    }
  }
  EXPECT_EQ(set.train.subject, train_subjects);
  EXPECT_EQ(set.test.subject, test_subjects);
  EXPECT_EQ(set.train.y, train_labels);
  // The second window of subject 1's first segment begins 64 rows after the first, which begins at row 52.
  const std::array<std::vector<double>, 9> signals = HarSignals(recordings.all[0], 50.0);
  const std::int64_t at = (1 * kHarSteps + 3) * kHarChannels + 4;
  EXPECT_EQ(set.train.x[at], static_cast<float>(signals[4][52 + 64 + 3]));
}

TEST(Recordings, FileComesBack) {
  const std::string path = testing::TempDir() + "/recordings.bin";
  const Recordings made = MadeRecordings(3);
  ASSERT_TRUE(WriteRecordings(path, made).ok());
  const Recordings read = *ReadRecordings(path);
  ASSERT_EQ(read.all.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(read.all[i].subject, made.all[i].subject);
    EXPECT_EQ(read.all[i].label, made.all[i].label);
    for (int k = 0; k < 6; ++k) EXPECT_EQ(read.all[i].signal[k], made.all[i].signal[k]);
  }
}

TEST(Recordings, DamageIsNamed) {
  const std::string path = testing::TempDir() + "/damaged.bin";
  ASSERT_TRUE(WriteRecordings(path, MadeRecordings(2)).ok());
  const std::string good = *ReadWholeFile(path);
  const auto error = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    const absl::Status status = ReadRecordings(path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
    return std::string(status.message());
  };
  std::string bytes = good;
  bytes[1000] ^= 1;
  EXPECT_THAT(error(bytes), HasSubstr("checksum"));
  bytes = good;
  bytes[8] = 2;
  EXPECT_THAT(error(bytes), HasSubstr("format 2, expected 1"));
  EXPECT_THAT(error(good.substr(0, good.size() - 1)), HasSubstr("rows together, found"));
  EXPECT_THAT(error("something else"), HasSubstr("not a recordings file"));
  // Rows whose bytes, in 64 bits, are none: 2^63 of 14 bytes each.
  bytes = good.substr(0, 56 + 16);
  bytes.replace(16, 8, std::string("\0\0\0\0\0\0\0\x80", 8));
  EXPECT_THAT(error(bytes), HasSubstr("of 9223372036854775808 rows together"));
  bytes = good;
  bytes.replace(40, 8, std::string(8, '\0'));  // samples a second
  EXPECT_THAT(error(bytes), HasSubstr("a unit or rate of 0, expected 50"));
  // Below twice the frequency of a filter.
  bytes.replace(40, 8, std::string("\0\0\0\0\0\0\x3e\x40", 8));
  EXPECT_THAT(error(bytes), HasSubstr("a unit or rate of 30, expected 50"));
  for (std::size_t place = 0; place < 56; ++place) {
    bytes = good;
    bytes[place] ^= 1;
    EXPECT_NE(error(bytes), "") << place;
  }
  EXPECT_EQ(ReadRecordings(path + ".none").status().code(), absl::StatusCode::kNotFound);
}

std::vector<std::int64_t> Counts(const SequenceSplit& split) {
  std::vector<std::int64_t> counts(kHarClasses);
  for (const std::int64_t label : split.y) ++counts.at(label);
  return counts;
}

// The recordings of the 30 volunteers give the window counts known for them (those of the walking classes are
// the archive's own within one), and, where windows derived by SciPy are at hand as text of 5 digits, every
// number. Where there are none, the made recordings go through a file and give the windows that they give in
// memory.
TEST(WindowsOf, RealRecordingsGiveTheKnownWindows) {
  const std::optional<std::string> fetched = FetchedRecordings();
  const std::optional<std::string> real = RealDataFolder();
  if (!fetched) {
    const std::string path = testing::TempDir() + "/made.bin";
    ASSERT_TRUE(WriteRecordings(path, MadeRecordings(9)).ok());
    ExpectSameAsText(WindowsOf(*ReadRecordings(path)).train, WindowsOf(MadeRecordings(9)).train, 9);
    return;
  }
  const absl::StatusOr<Recordings> recordings = ReadRecordings(*fetched);
  ASSERT_TRUE(recordings.ok()) << recordings.status();
  const SequenceSet set = WindowsOf(*recordings);
  EXPECT_EQ(set.train.samples(), 7415);
  EXPECT_EQ(set.test.samples(), 2996);
  EXPECT_THAT(Counts(set.train), ElementsAre(1226, 1073, 987, 1293, 1423, 1413));
  EXPECT_THAT(Counts(set.test), ElementsAre(496, 471, 420, 508, 556, 545));
  if (!real) return;
  const std::string folder = Unpack(*real + "/hapt/hapt_windows_uci_layout.tar.xz");
  const absl::StatusOr<SequenceSet> text = ReadHarText(folder + "/HAPT derived windows");
  ASSERT_TRUE(text.ok()) << text.status();
  ExpectSameAsText(set.train, text->train, 5);
  ExpectSameAsText(set.test, text->test, 5);
}

}  // namespace
}  // namespace plait::data
