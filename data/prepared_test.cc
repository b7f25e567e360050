#include "data/prepared.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "data/hdf5/atomic_file.h"
#include "data/hdf5/file.h"
#include "data/testing/har_files.h"

namespace plait::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

std::string Made(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name;
  SequenceSet set = SmallHarSet();
  set.source = "six windows";
  set.synthetic = true;
  EXPECT_TRUE(WritePrepared(path, set, "key 1").ok());
  return path;
}

TEST(Prepared, ComesBackWhole) {
  const std::string path = Made("whole.h5");
  const SequenceSet expected = SmallHarSet();
  const SequenceSet set = *ReadPrepared(path, {});
  EXPECT_EQ(set.train.x, expected.train.x);
  EXPECT_EQ(set.test.x, expected.test.x);
  EXPECT_EQ(set.test.y, expected.test.y);
  EXPECT_EQ(set.train.subject, expected.train.subject);
  EXPECT_EQ(set.train.steps, 128);
  EXPECT_EQ(set.train.channels, 9);
  EXPECT_EQ(set.class_names, expected.class_names);
  EXPECT_EQ(set.description(), "synthetic stand-in: six windows");
  EXPECT_EQ(*PreparedKey(path), "key 1");
}

TEST(Prepared, ARankReadsItsOwnSteps) {
  const SequenceSet whole = SmallHarSet();
  const SequenceSet part = *ReadPrepared(Made("steps.h5"), {.first_step = 32, .steps = 16});
  EXPECT_EQ(part.train.steps, 16);
  for (std::int64_t sample = 0; sample < 3; ++sample) {
    for (std::int64_t i = 0; i < 16 * 9; ++i) {
      ASSERT_EQ(part.train.x[sample * 16 * 9 + i], whole.train.x[(sample * 128 + 32) * 9 + i]);
    }
  }
  EXPECT_EQ(part.train.y, whole.train.y);
  EXPECT_EQ(ReadPrepared(Made("steps.h5"), {.first_step = 120})->train.steps, 8);
  EXPECT_FALSE(ReadPrepared(Made("steps.h5"), {.first_step = 120, .steps = 9}).ok());
}

TEST(Prepared, AShareOfTheSamples) {
  const SequenceSet part = *ReadPrepared(Made("share.h5"), {.fraction = 0.67});
  EXPECT_EQ(part.train.samples(), 2);
  EXPECT_EQ(part.train.y, Subsampled(SmallHarSet().train, 0.67).y);
}

std::string DamageMessage(const std::string& path) {
  const absl::Status status = ReadPrepared(path, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  return std::string(status.message());
}

// Overwrites one byte of the stored numbers, found by their own bytes.
void FlipByteOf(const std::string& path, const float value) {
  std::string bytes = *ReadWholeFile(path);
  const std::size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&value), sizeof(value)));
  ASSERT_NE(at, std::string::npos);
  bytes[at] ^= 1;
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(Prepared, AFlippedByteIsNamed) {
  const std::string path = Made("flipped.h5");
  FlipByteOf(path, SmallHarSet().test.x[17]);
  EXPECT_THAT(DamageMessage(path), AllOf(HasSubstr("/test/x"), HasSubstr("checksum")));
}

TEST(Prepared, ForeignTruncatedAndNewerFilesAreNamed) {
  const std::string path = Made("damage.h5");
  fs::resize_file(path, fs::file_size(path) / 2);
  EXPECT_THAT(DamageMessage(path), HasSubstr("truncated"));
  std::ofstream(path, std::ios::trunc) << "no";
  EXPECT_THAT(DamageMessage(path), HasSubstr("not an HDF5 file"));
  ASSERT_TRUE(File::Create(path)->Close().ok());
  EXPECT_THAT(DamageMessage(path), HasSubstr("not prepared sequences"));
  Made("damage.h5");
  File file = *File::Open(path, File::Mode::kReadWrite);
  ASSERT_TRUE(SetAttribute(file, "/", "format_version", std::int64_t{2}).ok());
  ASSERT_TRUE(file.Close().ok());
  EXPECT_THAT(DamageMessage(path), HasSubstr("format 2, expected 1"));
}

TEST(Prepared, WithoutAKeyIsDamaged) {
  const std::string path = testing::TempDir() + "/keyless.h5";
  File file = *File::Create(path);
  ASSERT_TRUE(SetAttribute(file, "/", "format", "plait sequences").ok());
  ASSERT_TRUE(SetAttribute(file, "/", "format_version", std::int64_t{1}).ok());
  ASSERT_TRUE(file.Close().ok());
  const absl::Status status = PreparedKey(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("keyless.h5"), HasSubstr("key")));
}

TEST(Prepared, LabelsThatDoNotFitAreNamed) {
  const std::string path = testing::TempDir() + "/labels.h5";
  SequenceSet set = SmallHarSet();
  set.train.y[1] = 6;
  ASSERT_TRUE(WritePrepared(path, set, "").ok());
  EXPECT_THAT(DamageMessage(path), HasSubstr("/train/y: a label outside 0..5"));
}

}  // namespace
}  // namespace plait::data
