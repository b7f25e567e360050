// Videos with known pixels, and real ones compared with other software (testing/make_expected_frames.py).
#include "data/video/read_video.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "data/images/testing/image_files.h"
#include "data/testing/har_files.h"
#include "data/video/testing/avi_file.h"

namespace plait::data {
namespace {

using ::testing::HasSubstr;

std::string Place(const std::string& name) { return testing::TempDir() + "/read_video/" + name; }

// Frame k is a pattern moved on by k.
std::vector<Image> Frames(std::int64_t count, std::int64_t rows, std::int64_t columns) {
  std::vector<Image> frames;
  for (std::int64_t k = 0; k < count; ++k) {
    frames.push_back(PatternImage(rows, columns));
    for (std::uint8_t& pixel : frames.back().pixels) pixel = static_cast<std::uint8_t>(pixel + 11 * k);
  }
  return frames;
}

std::string Written(const std::string& name, const std::string& bytes) {
  WriteFile(Place(name), bytes);
  return Place(name);
}

// The pixels of these frames, one behind the other.
std::vector<std::uint8_t> PixelsOf(const std::vector<Image>& frames, const std::vector<int>& which) {
  std::vector<std::uint8_t> pixels;
  for (const int k : which) pixels.insert(pixels.end(), frames[k].pixels.begin(), frames[k].pixels.end());
  return pixels;
}

void ExpectClip(const std::string& path, const ClipOptions& options,
                const std::vector<std::uint8_t>& pixels) {
  const absl::StatusOr<Clip> clip = ReadVideo(path, options);
  ASSERT_TRUE(clip.ok()) << clip.status();
  EXPECT_EQ(clip->size, options.size);
  EXPECT_EQ(clip->frames * options.size * options.size * 3, static_cast<std::int64_t>(pixels.size()));
  EXPECT_TRUE(clip->pixels == pixels) << path << ", " << TextOf(options);
}

TEST(ReadVideo, TakesTheFramesThatAreAskedFor) {
  const std::vector<Image> frames = Frames(7, 10, 10);
  const std::string path = Written("seven.avi", AviBytes(frames));
  ExpectClip(path, {.frames = 7, .size = 10}, PixelsOf(frames, {0, 1, 2, 3, 4, 5, 6}));
  ExpectClip(path, {.frames = 3, .size = 10}, PixelsOf(frames, {0, 1, 2}));
  ExpectClip(path, {.frames = 9, .size = 10}, PixelsOf(frames, {0, 1, 2, 3, 4, 5, 6}));  // the rest is black
  ExpectClip(path, {.frames = 3, .step = 2, .size = 10}, PixelsOf(frames, {0, 2, 4}));
  ExpectClip(path, {.frames = 9, .step = 3, .size = 10}, PixelsOf(frames, {0, 3, 6}));
}

TEST(ReadVideo, TakesTheMiddleSquare) {
  const std::vector<Image> frames = Frames(2, 8, 11);
  std::vector<std::uint8_t> middle;
  for (const Image& frame : frames) {
    for (int i = 0; i < 8; ++i) {
      const auto row = frame.pixels.begin() + (i * 11 + 2) * 3;  // (11 - 8) / 2, to the even neighbour
      middle.insert(middle.end(), row, row + 8 * 3);
    }
  }
  ExpectClip(Written("wide.avi", AviBytes(frames)), {.frames = 2, .size = 8}, middle);
}

TEST(ReadVideo, ReadsFoldersOfFramesInTheirOrder) {
  const std::vector<Image> frames = Frames(12, 6, 6);
  std::vector<int> all;
  for (int k = 0; k < 12; ++k) {
    Written(absl::StrCat("frames/frame", k + 1, ".png"), PngBytes(frames[k]));
    all.push_back(k);
  }
  Written("frames/readme.txt", "no frame");
  ExpectClip(Place("frames"), {.frames = 12, .size = 6}, PixelsOf(frames, all));
  ExpectClip(Place("frames"), {.frames = 3, .step = 5, .size = 6}, PixelsOf(frames, {0, 5, 10}));
}

// Decoding goes by the bytes, so a PNG may have any of the endings.
TEST(ReadVideo, OrdersFramesOfSeveralEndingsByTheirNumbers) {
  const std::vector<Image> frames = Frames(12, 6, 6);
  const std::vector<std::string> endings = {".jpeg", ".jpg", ".png"};
  std::vector<int> all;
  for (int k = 0; k < 12; ++k) {
    Written(absl::StrCat("endings/frame", k + 1, endings[k % 3]), PngBytes(frames[k]));
    all.push_back(k);
  }
  ExpectClip(Place("endings"), {.frames = 12, .size = 6}, PixelsOf(frames, all));
}

void ExpectError(const std::string& path, absl::StatusCode code, const std::string& text) {
  const absl::Status status = ReadVideo(path, {.frames = 4, .size = 10}).status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(testing::StartsWith(path + ": "), HasSubstr(text)));
}

TEST(ReadVideo, SaysWhatIsWrong) {
  using absl::StatusCode;
  const std::string avi = AviBytes(Frames(4, 10, 10));
  ExpectError(Place("none.avi"), StatusCode::kNotFound, "no such file");
  ExpectError(Written("text.avi", "no video, but a text"), StatusCode::kInvalidArgument,
              "cannot be read as a video");
  ExpectError(Written("empty.avi", ""), StatusCode::kInvalidArgument, "cannot be read as a video");
  ExpectError(Written("sound.avi", WavBytes()), StatusCode::kInvalidArgument, "has no video stream");
  // Within the third frame, whose bytes end 340 before the index of 4 * 16 + 8 bytes.
  ExpectError(Written("cut.avi", avi.substr(0, avi.size() - 72 - 340 - 20)), StatusCode::kDataLoss,
              "damaged or cut short at frame 3");
  std::filesystem::create_directories(Place("empty"));
  ExpectError(Place("empty"), StatusCode::kNotFound, "a folder without frames");
  Written("damaged/1.png", PngBytes(Frames(1, 10, 10)[0]));
  const std::string cut = Written("damaged/2.png", PngBytes(Frames(1, 10, 10)[0]).substr(0, 100));
  EXPECT_EQ(ReadVideo(Place("damaged"), {.frames = 4, .size = 10}).status(),
            absl::DataLossError(cut + ": the image is damaged or cut short"));
}

// Pipes would be waited for.
TEST(ReadVideo, TakesOnlyRegularFiles) {
  std::filesystem::create_directories(Place("pipes"));
  const std::string video = Place("pipe.avi"), frame = Place("pipes/1.png");
  for (const std::string& pipe : {video, frame}) ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  ExpectError(video, absl::StatusCode::kInvalidArgument, "expected a regular file");
  EXPECT_EQ(ReadVideo(Place("pipes"), {.frames = 4, .size = 10}).status(),
            absl::InvalidArgumentError(frame + ": expected a regular file"));
}

// Uncompressed, a frame of 10 x 10 has 320 bytes and 8 of the chunk's header.
TEST(ReadVideo, RefusesVideosCutInTheirSound) {
  const std::vector<Image> frames = Frames(4, 10, 10);
  const std::string avi = AviBytes(frames, 640);
  ExpectClip(Written("sound_and_frames.avi", avi), {.frames = 4, .size = 10}, PixelsOf(frames, {0, 1, 2, 3}));
  std::size_t chunk = 0;
  for (int k = 0; k < 2; ++k) chunk = avi.find("01wb", chunk + 1);
  for (const int kept : {-328, 0, 3, 8, 108, 648, 651}) {  // at edges, in headers and in the sound
    const std::string cut = Written(absl::StrCat("cut", kept, ".avi"), avi.substr(0, chunk + kept));
    ExpectError(cut, absl::StatusCode::kDataLoss, "damaged or cut short at frame ");
    ExpectClip(cut, {.frames = 1, .size = 10}, PixelsOf(frames, {0}));
  }
  const std::size_t index = avi.find("idx1");
  ExpectClip(Written("no_index.avi", avi.substr(0, index)), {.frames = 5, .size = 10},
             PixelsOf(frames, {0, 1, 2, 3}));
}

struct ExpectedFrame {
  const char* file;
  int frames;  // of the video
  int index;
  double means[12];  // (2, 2, 3): of quarters of the middle square
};
constexpr ExpectedFrame kExpected[] = {
#include "data/video/testing/expected_frames.inc"
};

// Both sides round each pixel to the nearest level. Pillow's JPEG decoder and FFmpeg's differ in their transforms too.
TEST(ReadVideo, RealVideosHaveTheFramesThatOtherSoftwareDecodes) {
  const std::optional<std::string> data = RealDataFolder();
  const std::string folder = data.value_or("") + "/video-samples/";
  if (!data || !std::filesystem::exists(folder))
    return ExpectClip(Written("made.avi", AviBytes(Frames(2, 4, 4))), {.frames = 2, .size = 4},
                      PixelsOf(Frames(2, 4, 4), {0, 1}));
  for (const ExpectedFrame& expected : kExpected) {
    const bool pictures = expected.file[0] == '\0';
    const std::int64_t size = expected.file[0] == 'a' ? 256 : 240;
    const absl::StatusOr<Clip> clip = ReadVideo(folder + expected.file, {.frames = 300, .size = size});
    ASSERT_TRUE(clip.ok()) << clip.status();
    EXPECT_EQ(clip->frames, expected.frames) << expected.file;
    const std::uint8_t* frame = clip->pixels.data() + expected.index * size * size * 3;
    for (int at = 0; at < 12; ++at) {
      const std::int64_t top = at / 6 * size / 2, left = at / 3 % 2 * size / 2;
      double sum = 0;
      for (std::int64_t i = top; i < top + size / 2; ++i) {
        for (std::int64_t j = left; j < left + size / 2; ++j) sum += frame[(i * size + j) * 3 + at % 3];
      }
      EXPECT_NEAR(sum / static_cast<double>(size * size / 4), expected.means[at], pictures ? 1 : 0.5)
          << expected.file << ", frame " << expected.index << ", " << at;
    }
  }
}

}  // namespace
}  // namespace plait::data
