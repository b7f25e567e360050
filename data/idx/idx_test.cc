// Files of known bytes, and every way to damage them.
#include "data/idx/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "data/idx/gzip.h"
#include "data/idx/testing/idx_files.h"

namespace plait::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Two images of 1 x 3, by hand: 2051, 2, 1, 3.
const std::string kTwoImages("\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x03\x01\x02\x03\xfd\xfe\xff", 22);
const std::string kTwoLabels("\0\0\x08\x01\0\0\0\x02\x07\xff", 10);

std::string Path(const std::string& name) { return absl::StrCat(testing::TempDir(), "/", name); }

// The error of reading these bytes as images: of this code, one line, and it begins with the file's name.
std::string ImagesError(const std::string& bytes, absl::StatusCode code) {
  const std::string path = Path("damaged");
  WriteBytes(path, bytes);
  const absl::Status status = ReadIdxImages(path).status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_TRUE(absl::StartsWith(status.message(), path + ": ")) << status;
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
  return std::string(status.message().substr(std::min(status.message().size(), path.size() + 2)));
}

TEST(Idx, ReadsWhatTheFormatSays) {
  WriteBytes(Path("images"), kTwoImages);
  WriteBytes(Path("labels"), kTwoLabels);
  const absl::StatusOr<ImageSplit> split = ReadIdxSplit(Path("images"), Path("labels"));
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(split->samples(), 2);
  EXPECT_EQ(split->rows, 1);
  EXPECT_EQ(split->columns, 3);
  EXPECT_THAT(split->images, ElementsAre(1, 2, 3, 253, 254, 255));
  EXPECT_THAT(split->labels, ElementsAre(7, 255));
}

TEST(Idx, TellsGzipByItsBytesNotItsName) {
  WriteBytes(Path("packed"), GzipOf(kTwoImages));
  WriteBytes(Path("plain.gz"), kTwoImages);
  for (const std::string name : {"packed", "plain.gz"}) {
    const absl::StatusOr<IdxImages> images = ReadIdxImages(Path(name));
    ASSERT_TRUE(images.ok()) << images.status();
    EXPECT_EQ(images->pixels, "\x01\x02\x03\xfd\xfe\xff");
  }
}

// More bytes than one pass of the unpacking has room for, and members in a row.
TEST(Idx, UnpacksLargeFilesAndSeveralMembers) {
  ImageSplit split{200, 300, {}, {}};
  for (int i = 0; i < 5; ++i) split.labels.push_back(i);
  std::uint32_t state = 1;
  for (int i = 0; i < 5 * 200 * 300; ++i)
    split.images.push_back((state = state * 1664525 + 1013904223) >> 24);
  const std::string bytes = IdxImageBytes(split);
  const std::string one = GzipOf(bytes);
  const std::string two = GzipOf(bytes.substr(0, 70000)) + GzipOf(bytes.substr(70000));
  for (const std::string& packed : {one, two}) {
    WriteBytes(Path("large"), packed);
    const absl::StatusOr<IdxImages> images = ReadIdxImages(Path("large"));
    ASSERT_TRUE(images.ok()) << images.status();
    EXPECT_TRUE(images->pixels == bytes.substr(16));
  }
}

TEST(Idx, NamesWhatIsNoIdxFile) {
  constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(ImagesError("<html>404</html>", kInvalid),
            "not an IDX file: expected 00 00 08 03 at its begin, found 3c 68 74 6d");
  EXPECT_THAT(ImagesError("", kInvalid), HasSubstr("found nothing"));
  EXPECT_THAT(ImagesError(std::string("\0\0", 2), kInvalid), HasSubstr("found 00 00"));
  EXPECT_THAT(ImagesError(std::string("\x03\x08\0\0", 4), kInvalid), HasSubstr("found 03 08 00 00"));
  EXPECT_EQ(ImagesError(kTwoLabels, kInvalid), "an IDX file of labels (2049), expected images (2051)");
  EXPECT_EQ(ImagesError(std::string("\0\0\x0d\x03", 4) + kTwoImages.substr(4), kInvalid),
            "an IDX file of type 0x0d with 3 dimensions, expected images (2051)");
  EXPECT_THAT(ImagesError(GzipOf("<html>404</html>"), kInvalid), HasSubstr("not an IDX file"));
  WriteBytes(Path("images"), kTwoImages);
  EXPECT_THAT(std::string(ReadIdxLabels(Path("images")).status().message()),
              HasSubstr("an IDX file of images (2051), expected labels (2049)"));
  EXPECT_EQ(ReadIdxImages(Path("absent")).status().code(), absl::StatusCode::kNotFound);
}

TEST(Idx, NamesSizesThatCannotBe) {
  std::string bytes = kTwoImages;
  bytes[7] = 0;
  EXPECT_THAT(ImagesError(bytes, absl::StatusCode::kInvalidArgument), HasSubstr("says 0 images of 1 x 3"));
  bytes = kTwoImages;
  bytes[12] = '\x7f';
  EXPECT_THAT(ImagesError(bytes, absl::StatusCode::kInvalidArgument),
              HasSubstr("2 images of 1 x 2130706435"));
}

TEST(Idx, NamesTruncationAndWrongCounts) {
  constexpr absl::StatusCode kLoss = absl::StatusCode::kDataLoss;
  EXPECT_EQ(ImagesError(kTwoImages.substr(0, 21), kLoss),
            "cut short: its header says 2 images of 1 x 3, 22 bytes; found 21; get the file again");
  EXPECT_THAT(ImagesError(kTwoImages.substr(0, 9), kLoss),
              HasSubstr("in its header: expected 16 bytes, found 9"));
  EXPECT_THAT(ImagesError(kTwoImages + "x", kLoss), HasSubstr("too long: its header says 2 images"));
  EXPECT_THAT(ImagesError(GzipOf(kTwoImages + "xyz"), kLoss),
              HasSubstr("too long: its header says 2 images"));
  EXPECT_THAT(ImagesError(GzipOf(kTwoImages.substr(0, 21)), kLoss), HasSubstr("found 21"));
  // A header that promises 4 billion images must not ask for their memory.
  std::string huge = kTwoImages;
  huge[4] = huge[10] = huge[14] = '\xff';
  for (const std::string& bytes : {huge, GzipOf(huge)})
    EXPECT_THAT(ImagesError(bytes, kLoss), HasSubstr("cut short"));
}

TEST(Idx, NamesDamagedGzip) {
  constexpr absl::StatusCode kLoss = absl::StatusCode::kDataLoss;
  const std::string good = GzipOf(kTwoImages);
  // Every place to cut it, and every byte wrong that decides: the payload and the checksum of its end.
  for (std::size_t length = 2; length < good.size(); ++length) {
    EXPECT_THAT(ImagesError(good.substr(0, length), kLoss), HasSubstr("gzip data are cut short")) << length;
  }
  for (std::size_t at = good.size() - 8; at < good.size(); ++at) {
    std::string bytes = good;
    bytes[at] ^= 1;
    EXPECT_THAT(ImagesError(bytes, kLoss), HasSubstr("gzip data are damaged")) << at;
  }
  EXPECT_THAT(ImagesError(good + "x", kLoss), HasSubstr("something else follows"));
  std::string pixels = kTwoImages;
  pixels[18] ^= 1;
  // The last eight bytes are checksum and size: those of other pixels.
  const std::string other = GzipOf(pixels);
  EXPECT_THAT(ImagesError(other.substr(0, other.size() - 8) + good.substr(good.size() - 8), kLoss),
              HasSubstr("gzip data are damaged"));
}

// More than gzip can pack into the file, found before anything is unpacked.
TEST(Idx, NamesSizesThatGzipCannotHold) {
  std::string bytes = kTwoImages.substr(0, 16) + std::string(4'000'000, '\0');
  bytes.replace(4, 12, "\x7f\xff\xff\xff\0\0\xff\xff\0\0\xff\xff", 12);
  EXPECT_THAT(ImagesError(GzipOf(bytes), absl::StatusCode::kDataLoss),
              HasSubstr("cut short: its header says 2147483647 images of 65535 x 65535"));
}

TEST(Idx, NamesImagesAndLabelsThatDoNotMatch) {
  WriteBytes(Path("images"), kTwoImages);
  WriteBytes(Path("labels"), IdxLabelBytes(SmallImageSet().train));
  const absl::Status status = ReadIdxSplit(Path("images"), Path("labels")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), absl::StrCat(Path("images"), ": 2 images, but 7 labels in ", Path("labels"),
                                           "; take both from the same set"));
}

TEST(Gunzip, StopsWhereItIsTold) {
  const std::string bytes(100000, 'a');
  EXPECT_EQ(*Gunzip(GzipOf(bytes), 10), bytes.substr(0, 10));
  EXPECT_EQ(*Gunzip(GzipOf(bytes), 1 << 20), bytes);
  // The damage lies behind what is asked for.
  const std::string packed = GzipOf(bytes);
  EXPECT_EQ(*Gunzip(packed.substr(0, packed.size() - 1), 10), bytes.substr(0, 10));
}

}  // namespace
}  // namespace plait::data
