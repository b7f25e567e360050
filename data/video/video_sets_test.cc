// Folders and splits in HMDB51's format, and all their errors.
#include "data/video/video_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "data/images/testing/image_files.h"
#include "data/video/synthetic_videos.h"
#include "data/video/testing/avi_file.h"

namespace plait::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class VideoSetsTest : public testing::Test {
 protected:
  VideoSetsTest()
      : folder_(testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name()) {}

  void Video(const std::string& name) {
    WriteFile(folder_ + "/videos/" + name, AviBytes({PatternImage(4, 4), PatternImage(4, 4)}));
  }
  void SplitFile(const std::string& name, const std::string& text) {
    WriteFile(folder_ + "/splits/" + name, text);
  }
  // Two classes, of three and two videos and a folder of frames.
  void Fill() {
    for (const char* name : {"jump/a.avi", "jump/b.avi", "jump/c.avi", "wave/a.avi", "wave/b.avi"})
      Video(name);
    WriteFile(folder_ + "/videos/wave/frames/1.png", PngBytes(PatternImage(4, 4)));
    WriteFile(folder_ + "/videos/jump/notes.txt", "no video");
    SplitFile("jump_test_split2.txt", "c.avi 1 \nb.avi 2 \na.avi 0 \n");
    SplitFile("wave_test_split2.txt", "a.avi 2 \r\nframes.avi 1\r\n\n");
  }
  absl::StatusOr<VideoSets> Find(bool with_splits = true) const {
    return FindVideos(
        {.folder = folder_ + "/videos", .splits = with_splits ? folder_ + "/splits" : "", .split = 2});
  }
  static std::vector<std::string> Names(const VideoSource& source) {
    std::vector<std::string> names;
    for (std::int64_t i = 0; i < source.videos(); ++i) names.push_back(source.name(i));
    return names;
  }
  void ExpectError(absl::StatusCode code, const std::string& text, bool with_splits = true) const {
    const absl::Status status = Find(with_splits).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }

  std::string folder_;
};

TEST_F(VideoSetsTest, TakesSplitsAsTheyAre) {
  Fill();
  const absl::StatusOr<VideoSets> sets = Find();
  ASSERT_TRUE(sets.ok()) << sets.status();
  EXPECT_THAT(sets->class_names, ElementsAre("jump", "wave"));
  EXPECT_THAT(Names(*sets->train), ElementsAre("jump/c.avi", "wave/frames"));
  EXPECT_THAT(Names(*sets->test), ElementsAre("jump/b.avi", "wave/a.avi"));
  EXPECT_EQ(sets->train->label(1), 1);
  EXPECT_EQ(sets->test->label(0), 0);
  EXPECT_EQ(sets->train->Read(0, {.frames = 5, .size = 4})->frames, 2);
  EXPECT_EQ(sets->train->Read(1, {.frames = 5, .size = 4})->pixels, PatternImage(4, 4).pixels);
}

TEST_F(VideoSetsTest, WithoutSplitsTheLastFifthIsForTesting) {
  Fill();
  const absl::StatusOr<VideoSets> sets = Find(false);
  ASSERT_TRUE(sets.ok()) << sets.status();
  EXPECT_THAT(Names(*sets->train), ElementsAre("jump/a.avi", "jump/b.avi", "wave/a.avi", "wave/b.avi"));
  EXPECT_THAT(Names(*sets->test), ElementsAre("jump/c.avi", "wave/frames"));
}

TEST_F(VideoSetsTest, FingerprintsFollowTheBytes) {
  Fill();
  const absl::StatusOr<VideoSets> sets = Find();
  ASSERT_TRUE(sets.ok()) << sets.status();
  const std::string video = *sets->train->Fingerprint(0), frames = *sets->train->Fingerprint(1);
  EXPECT_EQ(*sets->train->Fingerprint(0), video);
  WriteFile(folder_ + "/videos/jump/c.avi", AviBytes({PatternImage(4, 5), PatternImage(4, 5)}));
  WriteFile(folder_ + "/videos/wave/frames/1.png", PngBytes(PatternImage(4, 5)));
  EXPECT_NE(*sets->train->Fingerprint(0), video);
  EXPECT_NE(*sets->train->Fingerprint(1), frames);
}

// Pipes would be waited for.
TEST_F(VideoSetsTest, FingerprintsAreOfRegularFiles) {
  Fill();
  const std::string video = folder_ + "/videos/jump/c.avi", frame = folder_ + "/videos/wave/frames/2.png";
  std::filesystem::remove(video);
  for (const std::string& pipe : {video, frame}) ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const absl::StatusOr<VideoSets> sets = Find();
  ASSERT_TRUE(sets.ok()) << sets.status();
  EXPECT_EQ(sets->train->Fingerprint(0).status().message(), video + ": expected a regular file");
  EXPECT_EQ(sets->train->Fingerprint(1).status().message(), frame + ": expected a regular file");
}

TEST_F(VideoSetsTest, SaysWhatIsWrong) {
  using absl::StatusCode;
  ExpectError(StatusCode::kNotFound, "videos: cannot be listed: No such file");
  std::filesystem::create_directories(folder_ + "/videos");
  ExpectError(StatusCode::kNotFound, "videos: no class folders");
  Fill();
  SplitFile("wave_test_split2.txt", "a.avi 2\nz.avi 1\n");
  ExpectError(StatusCode::kNotFound, "wave_test_split2.txt:2: z.avi is not among the videos of wave");
  SplitFile("wave_test_split2.txt", "a.avi 2\na.avi 1\n");
  ExpectError(StatusCode::kInvalidArgument, "wave_test_split2.txt:2: a.avi is named twice");
  for (const char* line : {"a.avi 3\n", "a.avi\n", "a.avi 1 2\n", "a.avi 10\n"}) {
    SplitFile("wave_test_split2.txt", line);
    ExpectError(StatusCode::kInvalidArgument,
                "wave_test_split2.txt:1: expected the name of a video and 0, 1 or 2");
  }
  SplitFile("wave_test_split2.txt", "a.avi 1\n");
  SplitFile("jump_test_split2.txt", "a.avi 1\n");
  ExpectError(StatusCode::kNotFound, "2 videos to train on and 0 to test");
  std::filesystem::remove(folder_ + "/splits/jump_test_split2.txt");
  ExpectError(StatusCode::kNotFound, "jump_test_split2.txt");
  std::filesystem::create_directories(folder_ + "/videos/empty");
  ExpectError(StatusCode::kNotFound, "videos/empty: a class without videos");
  ExpectError(StatusCode::kNotFound, "videos/empty: a class without videos", false);
}

// The bright pixels' centre moves as the class says, over the frames of each clip.
TEST(SyntheticVideos, MoveInTheDirectionOfTheirClass) {
  const VideoSets sets = SyntheticVideos({.train_videos = 8, .test_videos = 4, .classes = 4});
  EXPECT_TRUE(sets.synthetic);
  EXPECT_THAT(sets.class_names, ElementsAre("right", "down", "left", "up"));
  const int down[] = {0, 1, 0, -1}, right[] = {1, 0, -1, 0};
  const ClipOptions options = {.frames = 12, .size = 32};
  for (std::int64_t index = 0; index < 8; ++index) {
    const Clip clip = *sets.train->Read(index, options);
    ASSERT_GE(clip.frames, 6);
    ASSERT_LE(clip.frames, 12);
    const auto centre = [&](std::int64_t frame, bool of_rows) {
      double sum = 0, weight = 0;
      for (std::int64_t at = 0; at < 32 * 32; ++at) {
        const std::uint8_t blue = clip.pixels[(frame * 32 * 32 + at) * 3 + 2];
        if (blue < 60) continue;
        sum += static_cast<double>(of_rows ? at / 32 : at % 32);
        ++weight;
      }
      return sum / weight;
    };
    const std::int64_t last = clip.frames - 1;
    const int label = static_cast<int>(sets.train->label(index));
    EXPECT_EQ(label, index % 4);
    const double moved_down = centre(last, true) - centre(0, true),
                 moved_right = centre(last, false) - centre(0, false);
    EXPECT_GT(moved_down * down[label] + moved_right * right[label], 2) << index;
    EXPECT_LT(std::abs(moved_down * right[label]) + std::abs(moved_right * down[label]), 1) << index;
    EXPECT_EQ(sets.train->Read(index, options)->pixels, clip.pixels);
  }
  EXPECT_NE(sets.train->Read(0, options)->pixels, sets.test->Read(0, options)->pixels);
}

}  // namespace
}  // namespace plait::data
