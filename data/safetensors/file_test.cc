#include "data/safetensors/file.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/seed.h"
#include "data/hdf5/atomic_file.h"
#include "data/safetensors/testing/testing_tensors.h"
#include "data/safetensors/writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plait::data::safetensors {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Path(const std::string& name) {
  return absl::StrCat(::testing::TempDir(), "/", getpid(), "_", name);
}

std::string Put(const std::string& name, const std::string& bytes) {
  std::ofstream(Path(name), std::ios::binary) << bytes;
  return Path(name);
}

// A file by hand: length, header, data.
std::string FileBytes(const std::string& header, const std::string& data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return bytes + header + data;
}

std::string BytesOf(const TensorView& tensor) {
  return {static_cast<const char*>(tensor.data), static_cast<std::size_t>(*ByteCount(tensor.info))};
}

TEST(File, ReadsWhatWasWritten) {
  const OwnedTensors tensors = OneOfEach();
  const std::string path = Path("each.safetensors");
  ASSERT_TRUE(WriteFile(path, tensors.views(), {{"format", "pt"}}).ok());
  absl::StatusOr<File> opened = File::Open(path);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const File file = *std::move(opened);
  EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}}));
  ASSERT_EQ(file.entries().size(), tensors.views().size());
  for (std::size_t i = 0; i < tensors.views().size(); ++i) {
    const auto found = file.Find(tensors.views()[i].name);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->info, tensors.views()[i].info);
    EXPECT_EQ(BytesOf(*found), tensors.Bytes(i)) << found->name;
    EXPECT_TRUE(IsAligned(*found)) << found->name;
  }
}

TEST(File, BytesAreThoseOfTheFormat) {
  const float values[] = {1, -2};
  const unsigned char truth = 1;
  const std::vector<TensorView> tensors = {{"b", {DType::kBool, {}}, &truth},
                                           {"a", {DType::kF32, {1, 2}}, values}};
  ASSERT_TRUE(WriteFile(Path("bytes"), tensors, {}).ok());
  const std::string header =
      R"({"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"b":{"dtype":"BOOL","shape":[],"data_offsets":[8,9]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(*ReadWholeFile(Path("bytes")), FileBytes(padded, std::string("\0\0\x80\x3f\0\0\0\xc0\x01", 9)));
}

TEST(File, OrderOfTensorsDoesNotMatter) {
  const OwnedTensors tensors = OneOfEach();
  std::vector<TensorView> reversed(tensors.views().rbegin(), tensors.views().rend());
  ASSERT_TRUE(WriteFile(Path("forward"), tensors.views(), {}).ok());
  ASSERT_TRUE(WriteFile(Path("reversed"), reversed, {}).ok());
  EXPECT_EQ(*ReadWholeFile(Path("forward")), *ReadWholeFile(Path("reversed")));
}

TEST(File, NoTensorsAtAll) {
  ASSERT_TRUE(WriteFile(Path("none"), {}, {{"k", "v"}}).ok());
  const auto file = File::Open(Path("none"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->entries().empty());
  EXPECT_EQ(file->metadata().at("k"), "v");
}

TEST(File, ReadIntoAsksForTypeAndShape) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  const std::vector<TensorView> tensors = {{"w", {DType::kF32, {2, 3}}, values}};
  const std::string path = Path("into");
  ASSERT_TRUE(WriteFile(path, tensors, {}).ok());
  const File file = *File::Open(path);
  std::vector<float> read(6, -1);
  EXPECT_EQ(file.ReadInto("w", {DType::kF32, {3, 2}}, read.data()).message(),
            absl::StrCat(path, ": tensor \"w\" is F32 [2, 3], expected F32 [3, 2]"));
  EXPECT_EQ(file.ReadInto("w", {DType::kI32, {2, 3}}, read.data()).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(file.ReadInto("v", {DType::kF32, {2, 3}}, read.data()).message(),
            absl::StrCat(path, ": no tensor \"v\" among its 1"));
  EXPECT_EQ(read, std::vector<float>(6, -1));
  ASSERT_TRUE(file.ReadInto("w", {DType::kF32, {2, 3}}, read.data()).ok());
  EXPECT_EQ(read, std::vector<float>(values, values + 6));
}

TEST(File, SpansOutliveMovesAndReplacement) {
  const OwnedTensors tensors = OneOfEach();
  const std::string path = Path("replaced");
  ASSERT_TRUE(WriteFile(path, tensors.views(), {}).ok());
  File first = *File::Open(path);
  const TensorView view = *first.Find("layer.I64");
  const File moved = std::move(first);
  ASSERT_TRUE(WriteFile(path, {}, {}).ok());
  EXPECT_EQ(BytesOf(view), tensors.Bytes(13));
  EXPECT_EQ(File::Open(path)->entries().size(), 0u);
}

TEST(File, NothingIsOverwrittenOnFailure) {
  const OwnedTensors tensors = OneOfEach();
  const std::string path = Path("kept");
  ASSERT_TRUE(WriteFile(path, tensors.views(), {}).ok());
  const std::string before = *ReadWholeFile(path);
  std::vector<TensorView> twice = tensors.views();
  twice.push_back(twice.front());
  EXPECT_EQ(WriteFile(path, twice, {}).message(),
            absl::StrCat(path, ": the name \"layer.BOOL\" is given twice, expected every name once"));
  const char byte = 0;
  const std::vector<TensorView> huge = {{"huge", {DType::kU8, {std::int64_t{1} << 60}}, &byte}};
  const absl::Status full = WriteFile(path, huge, {});
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()), HasSubstr("disk full"));
  const absl::Status late =
      WriteFile(path, {}, {}, {.before_replacing = [] { return absl::AbortedError("no"); }});
  EXPECT_EQ(late.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(*ReadWholeFile(path), before);
  EXPECT_EQ(WriteFile(Path("missing_folder/x"), {}, {}).code(), absl::StatusCode::kNotFound);
}

TEST(File, ShapesThatCannotBeWritten) {
  const std::vector<TensorView> negative = {{"n", {DType::kF32, {2, -1}}, nullptr}};
  EXPECT_EQ(WriteFile(Path("n"), negative, {}).message(),
            absl::StrCat(Path("n"), ": tensor \"n\": F32 [2, -1] has a negative length"));
  EXPECT_FALSE(std::filesystem::exists(Path("n")));
}

std::string ErrorOf(const std::string& path, absl::StatusCode code) {
  const absl::Status status = File::Open(path).status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), StartsWith(path + ": "));
  return std::string(status.message().substr(std::min(path.size() + 2, status.message().size())));
}

TEST(File, EachFaultHasItsLine) {
  const auto lost = absl::StatusCode::kDataLoss;
  const std::string header = R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  ASSERT_TRUE(File::Open(Put("good", FileBytes(header, "12345678"))).ok());
  EXPECT_EQ(ErrorOf(Put("empty", ""), lost), "0 bytes, expected at least 8: not a safetensors file");
  EXPECT_EQ(ErrorOf(Put("short", "1234567"), lost), "7 bytes, expected at least 8: not a safetensors file");
  EXPECT_EQ(ErrorOf(Put("text", "#!/bin/sh\n"), lost),
            "a header of 8299974037164990755 bytes, expected at most 100000000: not a safetensors file");
  EXPECT_EQ(ErrorOf(Put("cut_header", FileBytes(header, "").substr(0, 20)), lost),
            "12 bytes after the first 8, expected a header of 54 bytes: the file is cut short");
  EXPECT_EQ(ErrorOf(Put("cut_data", FileBytes(header, "1234567")), lost),
            "7 bytes of data, expected 8: the file is cut short");
  EXPECT_EQ(ErrorOf(Put("more_data", FileBytes(header, "123456789")), lost), "9 bytes of data, expected 8");
  EXPECT_EQ(ErrorOf(Put("no_json", FileBytes("{\"t\":", "")), lost),
            "the header is not JSON at its byte 6, expected a JSON object in UTF-8");
  EXPECT_THAT(ErrorOf(Path("not_there"), absl::StatusCode::kNotFound),
              StartsWith("cannot be opened: No such file"));
  EXPECT_EQ(ErrorOf(::testing::TempDir(), absl::StatusCode::kFailedPrecondition),
            "cannot be read, expected an ordinary file");
}

TEST(File, TheLongestHeaderIsReadAndNoLongerOne) {
  const std::string most = "{}" + std::string(kMaxHeaderBytes - 2, ' ');
  EXPECT_TRUE(File::Open(Put("most", FileBytes(most, ""))).ok());
  EXPECT_THAT(ErrorOf(Put("most", FileBytes(most + " ", "")), absl::StatusCode::kDataLoss),
              EndsWith("bytes, expected at most 100000000: not a safetensors file"));
  std::filesystem::remove(Path("most"));
}

// Every prefix of a file, and files with changed bytes: an error, or spans that can be read.
TEST(File, DamagedFilesAreErrorsOrReadable) {
  const OwnedTensors tensors = OneOfEach();
  ASSERT_TRUE(WriteFile(Path("whole"), tensors.views(), {{"format", "pt"}}).ok());
  const std::string whole = *ReadWholeFile(Path("whole"));
  for (std::size_t size = 0; size < whole.size(); size += size < 200 ? 1 : 7) {
    EXPECT_EQ(File::Open(Put("prefix", whole.substr(0, size))).status().code(), absl::StatusCode::kDataLoss)
        << size;
  }
  base::RandomStream random(base::DeriveSeed(2, "damaged files"));
  unsigned sum = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string damaged = whole;
    for (std::uint64_t change = 0; change <= random.Below(3); ++change) {
      damaged[random.Below(whole.size())] = static_cast<char>(random.Below(256));
    }
    const auto file = File::Open(Put("damaged", damaged));
    if (!file.ok()) continue;
    for (const Header::Entry& entry : file->entries()) {
      for (const char byte : BytesOf(*file->Find(entry.name))) sum += static_cast<unsigned char>(byte);
    }
  }
  EXPECT_GT(sum, 0u);
}

}  // namespace
}  // namespace plait::data::safetensors
