#include "data/video/feature_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace plait::data {
namespace {

using ::testing::HasSubstr;

const FrameFeatures kFeatures = {2, 3, {1, -2, 3.5, 4, 5, 6e-7F}};

std::string Place(const std::string& name) { return testing::TempDir() + "/features/new/" + name; }

TEST(FeatureFile, KeepsWhatWasMadeFromTheSame) {
  const std::string path = Place("a.avi.h5");
  EXPECT_EQ(ReadFeatures(path, "this").status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(WriteFeatures(path, kFeatures, "this").ok());
  const absl::StatusOr<FrameFeatures> found = ReadFeatures(path, "this");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->frames, 2);
  EXPECT_EQ(found->features, 3);
  EXPECT_EQ(found->values, kFeatures.values);
  const absl::Status other = ReadFeatures(path, "that").status();
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other.message()), HasSubstr("made from this; expected that"));
}

TEST(FeatureFile, DamageIsFound) {
  const std::string path = Place("b.h5");
  ASSERT_TRUE(WriteFeatures(path, kFeatures, "this").ok());
  std::string bytes(std::filesystem::file_size(path), '\0');
  std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const std::string number = {'\x00', '\x00', '\x60', '\x40'};  // 3.5
  const std::size_t at = bytes.find(number);
  ASSERT_NE(at, std::string::npos);
  bytes[at] = 1;
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(ReadFeatures(path, "this").status().code(), absl::StatusCode::kDataLoss);
  std::ofstream(path, std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  EXPECT_EQ(ReadFeatures(path, "this").status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace plait::data
