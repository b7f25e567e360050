// Files that scipy and h5py have written (testing/make_files.py), and damaged ones.
#include "data/matlab/matlab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/file.h"
#include "data/testing/har_files.h"

namespace plait::data {
namespace {

using ::testing::HasSubstr;

std::string Path(const std::string& name) { return absl::StrCat("data/matlab/testing/files/", name, ".mat"); }

// What make_files.py has put into an array.
void ExpectItsNumbers(const absl::StatusOr<MatlabArray>& array, const std::string& type,
                      const std::vector<std::int64_t>& shape = {3, 4, 5}) {
  ASSERT_TRUE(array.ok()) << array.status();
  ASSERT_EQ(array->shape, shape);
  std::size_t at = 0;
  for (std::int64_t k = 0; k < shape[2]; ++k) {
    for (std::int64_t j = 0; j < shape[1]; ++j) {
      for (std::int64_t i = 0; i < shape[0]; ++i, ++at) {
        auto expected = static_cast<double>((7 * i + 13 * j + 29 * k) % 101);
        if (j % 2 == 1 && !absl::StartsWith(type, "uint")) expected = -expected;
        if (type == "double" || type == "single") expected /= 2;
        ASSERT_EQ(array->values.at(at), expected) << type << " " << i << " " << j << " " << k;
      }
    }
  }
  EXPECT_EQ(array->values.size(), at);
}

TEST(Matlab, ReadsEveryNumericClass) {
  for (const char* const file : {"plain", "compressed", "v73"}) {
    for (const char* const name :
         {"double", "single", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"}) {
      SCOPED_TRACE(absl::StrCat(file, " ", name));
      ExpectItsNumbers(ReadMatlabArray(Path(file), name), name);
    }
  }
}

TEST(Matlab, ReadsUnsignedNumbersBeyondTheSignedOnes) {
  const std::string path = testing::TempDir() + "/large.mat";
  {
    File file = *File::Create(path);
    ASSERT_TRUE(WriteArray<std::uint64_t>(file, "/x", {1, 1ull << 63, 3ull << 62}, {3, 1}).ok());
    ASSERT_TRUE(SetAttribute(file, "/x", "MATLAB_class", "uint64").ok());
  }
  const absl::StatusOr<MatlabArray> array = ReadMatlabArray(path);
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->values, (std::vector<double>{1, 0x1p63, 0x1.8p63}));
}

TEST(Matlab, ReadsBigEndianFiles) {
  ExpectItsNumbers(ReadMatlabArray(Path("big_endian"), "values_be"), "int16");
}

TEST(Matlab, TheOnlyVariableNeedsNoName) {
  const absl::StatusOr<MatlabArray> array = ReadMatlabArray(Path("one"));
  ExpectItsNumbers(array, "uint16", {4, 6, 2});
  EXPECT_EQ(array->name, "only");
  const absl::StatusOr<MatlabArray> scalar = ReadMatlabArray(Path("compressed"), "x");
  ASSERT_TRUE(scalar.ok()) << scalar.status();
  EXPECT_EQ(scalar->values, std::vector<double>{5});
}

TEST(Matlab, OtherVariablesAreNamed) {
  const auto error = [](const std::string& file, const std::string& name = "") {
    const absl::Status status = ReadMatlabArray(Path(file), name).status();
    EXPECT_FALSE(status.ok());
    EXPECT_FALSE(absl::StrContains(status.message(), "\n"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(Path(file)));
    return std::string(status.message());
  };
  EXPECT_THAT(error("cell"), HasSubstr("variable c: a cell array; expected a real numeric array"));
  EXPECT_THAT(error("struct"), HasSubstr("variable s: a structure"));
  EXPECT_THAT(error("sparse"), HasSubstr("variable sp: a sparse array"));
  EXPECT_THAT(error("complex"), HasSubstr("variable z: complex numbers"));
  EXPECT_THAT(error("text"), HasSubstr("variable t: text"));
  EXPECT_THAT(error("v73", "text"), HasSubstr("variable text: of class char"));
  EXPECT_THAT(error("v73", "a_struct"), HasSubstr("variable a_struct: of class struct"));
  EXPECT_THAT(error("plain"), HasSubstr("expected a single variable, but there are: double, single, int8"));
  EXPECT_THAT(error("plain", "cube"), HasSubstr("no variable cube; there are: double"));
  EXPECT_THAT(error("v73", "cube"), HasSubstr("no variable cube; there are: "));
}

absl::StatusOr<MatlabArray> Read(const std::string& bytes, const std::string& name = "") {
  const std::string path = absl::StrCat(testing::TempDir(), "/damaged.mat");
  std::ofstream(path, std::ios::binary) << bytes;
  return ReadMatlabArray(path, name);
}

absl::Status ErrorOf(const std::string& bytes, const std::string& name = "") {
  return Read(bytes, name).status();
}

// Every prefix of a file is told, but one that ends between two variables, where one is missing.
TEST(Matlab, CutFiles) {
  for (const char* const file : {"one", "big_endian", "plain"}) {
    const std::string whole = *ReadWholeFile(Path(file));
    for (std::size_t size = 0; size < whole.size(); size += file == std::string("plain") ? 7 : 1) {
      const std::string name = file == std::string("plain") ? "uint64" : "";
      // Only the padding at the end may be missing.
      if (whole.size() - size < 8 && ErrorOf(whole.substr(0, size), name).ok()) continue;
      EXPECT_FALSE(ErrorOf(whole.substr(0, size), name).ok()) << file << " " << size;
    }
  }
  const std::string hdf5 = *ReadWholeFile(Path("v73"));
  EXPECT_FALSE(ErrorOf(hdf5.substr(0, hdf5.size() / 2), "double").ok());
}

TEST(Matlab, SizesThatDoNotFitTheFile) {
  std::string bytes = *ReadWholeFile(Path("big_endian"));
  const std::size_t dimensions = bytes.find(std::string("\0\0\0\3\0\0\0\4\0\0\0\5", 12));
  ASSERT_NE(dimensions, std::string::npos);
  bytes[dimensions] = 0x7f;  // 2130706435 x 4 x 5: no memory is taken for them
  EXPECT_THAT(std::string(ErrorOf(bytes).message()),
              HasSubstr("an array of 2130706435 x 4 x 5 elements in 120 bytes"));
  bytes[dimensions] = 0;
  bytes[dimensions + 3] = 2;  // 2 x 4 x 5
  EXPECT_THAT(std::string(ErrorOf(bytes).message()),
              HasSubstr("40 elements of 2 bytes expected, but there are 120"));
  bytes[dimensions] = static_cast<char>(0x80);
  EXPECT_THAT(std::string(ErrorOf(bytes).message()), HasSubstr("a dimension of -"));
}

TEST(Matlab, DamagedFiles) {
  std::string bytes = *ReadWholeFile(Path("one"));
  bytes[bytes.size() - 1] ^= 1;  // of the checksum
  EXPECT_EQ(ErrorOf(bytes).code(), absl::StatusCode::kDataLoss);
  // Whatever byte is flipped, reading ends with an error or an array of the file's own size.
  const std::string whole = *ReadWholeFile(Path("big_endian"));
  for (std::size_t at = 128; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] ^= 0x41;
    const absl::StatusOr<MatlabArray> array = Read(flipped);
    EXPECT_TRUE(!array.ok() || array->values.size() == 60) << at;
  }
  EXPECT_THAT(std::string(ErrorOf("no MATLAB file").message()),
              HasSubstr("not a MATLAB file of version 5 or 7.3"));
  EXPECT_EQ(ReadMatlabArray(Path("nowhere")).status().code(), absl::StatusCode::kNotFound);
}

// The published counts of the 16 classes and the background, where the real ground truth is at hand.
TEST(Matlab, IndianPinesGroundTruth) {
  const std::optional<std::string> real = RealDataFolder();
  const std::string path = real ? absl::StrCat(*real, "/indian-pines/Indian_pines_gt.mat") : "";
  if (!real || !ReadWholeFile(path).ok()) {
    std::cout << "No Indian Pines here: the array of scipy takes its place.\n";
    return ExpectItsNumbers(ReadMatlabArray(Path("one")), "uint16", {4, 6, 2});
  }
  const absl::StatusOr<MatlabArray> truth = ReadMatlabArray(path);
  ASSERT_TRUE(truth.ok()) << truth.status();
  EXPECT_EQ(truth->shape, (std::vector<std::int64_t>{145, 145}));
  std::vector<std::int64_t> counts(17);
  for (const double label : truth->values) ++counts.at(static_cast<std::size_t>(label));
  EXPECT_EQ(counts, (std::vector<std::int64_t>{10776, 46, 1428, 830, 237, 483, 730, 28, 478, 20, 972, 2455,
                                               593, 205, 1265, 386, 93}));
  // Column-major: scipy has 3 in row 70, columns 3 to 19.
  EXPECT_EQ(truth->values[70 + 145 * 2], 0);
  EXPECT_EQ(truth->values[70 + 145 * 3], 3);
}

}  // namespace
}  // namespace plait::data
