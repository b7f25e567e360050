// Records written byte by byte, damaged files, and real ones where they are at hand.
#include "data/images/cifar10.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <optional>

#include "data/images/open_image_sets.h"
#include "data/images/testing/image_files.h"
#include "data/testing/har_files.h"

namespace plait::data {
namespace {

using ::testing::HasSubstr;

std::string Folder(const std::string& name) {
  std::string folder = ::testing::TempDir() + "/" + name;
  std::filesystem::remove_all(folder);
  return folder;
}

std::string Message(const absl::StatusOr<ImageSets>& sets) { return std::string(sets.status().message()); }

TEST(Cifar10, ReadsRecordsInTheOrderOfTheFiles) {
  const std::string folder = Folder("cifar");
  WriteFile(folder + "/data_batch_2.bin", CifarBytes({7}));
  WriteFile(folder + "/data_batch_1.bin", CifarBytes({3, 0, 9}));
  WriteFile(folder + "/test_batch.bin", CifarBytes({4, 4}));
  WriteFile(folder + "/batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
  const absl::StatusOr<ImageSets> sets = OpenImageSets({.data = folder});
  ASSERT_TRUE(sets.ok()) << sets.status();
  ASSERT_EQ(sets->train->samples(), 4);
  EXPECT_EQ(sets->test->samples(), 2);
  EXPECT_EQ(sets->train->label(0), 3);
  EXPECT_EQ(sets->train->label(3), 7);
  EXPECT_EQ(sets->class_names[9], "j");
  EXPECT_EQ(sets->rows, 32);
  const Image image = *sets->train->Read(2);
  Image expected = PatternImage(32, 32);
  for (std::uint8_t& pixel : expected.pixels) pixel += 2;
  EXPECT_EQ(image.pixels, expected.pixels);
  EXPECT_EQ(sets->description(), "CIFAR-10 in " + folder);
}

TEST(Cifar10, ReadsAPackedFileOnlyWithoutItsUnpackedOne) {
  const std::string folder = Folder("both");
  WriteFile(folder + "/data_batch_1.bin", CifarBytes({3, 0}));
  WriteFile(folder + "/data_batch_1.bin.gz", CifarBytes({3, 0}));
  WriteFile(folder + "/data_batch_2.bin.gz", CifarBytes({7}));
  WriteFile(folder + "/test_batch.bin", CifarBytes({4}));
  WriteFile(folder + "/test_batch.bin.gz", CifarBytes({4}));
  const absl::StatusOr<ImageSets> sets = ReadCifar10(folder);
  ASSERT_TRUE(sets.ok()) << sets.status();
  ASSERT_EQ(sets->train->samples(), 3);
  EXPECT_EQ(sets->train->label(2), 7);
  EXPECT_EQ(sets->test->samples(), 1);
}

TEST(Cifar10, MeanAndDeviationAreThoseOfTheTrainingImages) {
  const std::string folder = Folder("scale");
  // One image: red 10 and 20 in turn, green 255, blue 0.
  std::string bytes(1 + 3072, '\0');
  for (int at = 0; at < 1024; ++at) {
    bytes[1 + at] = static_cast<char>(at % 2 == 0 ? 10 : 20);
    bytes[1 + 1024 + at] = static_cast<char>(255);
  }
  WriteFile(folder + "/cifar-10-batches-bin/data_batch_1.bin", bytes);
  WriteFile(folder + "/cifar-10-batches-bin/test_batch.bin", bytes);
  const absl::StatusOr<ImageSets> sets = ReadCifar10(folder);
  ASSERT_TRUE(sets.ok()) << sets.status();
  EXPECT_EQ(sets->scale.mean, (std::vector<double>{0.0588, 1, 0}));
  EXPECT_EQ(sets->scale.deviation, (std::vector<double>{0.0196, 1, 1}));
}

TEST(Cifar10, NamesWhatIsWrongWithAFile) {
  const std::string folder = Folder("bad");
  EXPECT_THAT(Message(ReadCifar10(folder)), HasSubstr("no data_batch_*.bin here"));
  WriteFile(folder + "/data_batch_1.bin", CifarBytes({3}));
  EXPECT_THAT(Message(ReadCifar10(folder)), HasSubstr("no test_batch*.bin here"));
  WriteFile(folder + "/test_batch.bin", CifarBytes({3}).substr(1));
  EXPECT_THAT(Message(ReadCifar10(folder)),
              HasSubstr("test_batch.bin: 3072 bytes; expected a multiple of 3073"));
  WriteFile(folder + "/test_batch.bin", CifarBytes({3, 10}));
  EXPECT_THAT(Message(ReadCifar10(folder)), HasSubstr("image 1 has label 10; expected 0 to 9"));
  WriteFile(folder + "/test_batch.bin", "");
  EXPECT_THAT(Message(ReadCifar10(folder)), HasSubstr("test_batch.bin: 0 bytes"));
  WriteFile(folder + "/test_batch.bin", std::string("\x1f\x8b\x08\x00", 4));
  EXPECT_THAT(Message(ReadCifar10(folder)), HasSubstr("test_batch.bin: gzip data are cut short"));
}

// Where a reader would wait for a writer.
TEST(Cifar10, RefusesAPipe) {
  const std::string folder = Folder("pipe");
  WriteFile(folder + "/test_batch.bin", CifarBytes({3}));
  const std::string batch = folder + "/data_batch_1.bin", names = folder + "/batches.meta.txt";
  ASSERT_EQ(mkfifo(batch.c_str(), 0600), 0);
  ASSERT_EQ(mkfifo(names.c_str(), 0600), 0);
  EXPECT_EQ(Message(ReadCifar10(folder)), batch + ": expected a regular file");
  std::filesystem::remove(batch);
  WriteFile(batch, CifarBytes({3}));
  const absl::StatusOr<ImageSets> sets = ReadCifar10(folder);
  ASSERT_TRUE(sets.ok()) << sets.status();
  EXPECT_EQ(sets->class_names[3], "3");
}

// The first 4000 and 1000 images of the published files: label counts and checksums by Python's zlib.
TEST(Cifar10, ReadsThePublishedImages) {
  const std::optional<std::string> real = RealDataFolder();
  const std::string folder = real.value_or("") + "/cifar10-subset";
  if (!HasCifar10(folder)) return;  // the records above are all that such a machine has
  const absl::StatusOr<ImageSets> sets = ReadCifar10(folder);
  ASSERT_TRUE(sets.ok()) << sets.status();
  EXPECT_EQ(sets->train->samples(), 4000);
  EXPECT_EQ(sets->test->samples(), 1000);
  EXPECT_EQ(sets->class_names[sets->train->label(0)], "frog");
  // The whole set's, as every program quotes them: 0.4914, 0.4822, 0.4465 and 0.2470, 0.2435, 0.2616. The mean of
  // 4000 images strays by a standard deviation of about 0.12 / sqrt(4000).
  const double means[] = {0.4914, 0.4822, 0.4465}, deviations[] = {0.2470, 0.2435, 0.2616};
  for (int c = 0; c < 3; ++c) {
    EXPECT_NEAR(sets->scale.mean[c], means[c], 4 * 0.12 / std::sqrt(4000.0));
    EXPECT_NEAR(sets->scale.deviation[c], deviations[c], 4 * 0.12 / std::sqrt(4000.0));
  }
}

}  // namespace
}  // namespace plait::data
