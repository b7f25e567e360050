// Files of known pixels through the decoder, and folders of them.
#include "data/images/class_folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "data/hdf5/atomic_file.h"
#include "data/images/decode.h"
#include "data/images/open_image_sets.h"
#include "data/images/testing/image_files.h"
#include "data/mapped_file.h"

namespace plait::data {
namespace {

using ::testing::HasSubstr;

std::string Folder(const std::string& name) {
  std::string folder = ::testing::TempDir() + "/" + name;
  std::filesystem::remove_all(folder);
  return folder;
}

TEST(DecodeImage, PngHasTheVeryPixels) {
  // Rows that are no multiple of any vector.
  for (const auto& [rows, columns] : {std::pair(1, 1), std::pair(5, 7), std::pair(33, 50)}) {
    const Image image = PatternImage(rows, columns);
    const absl::StatusOr<Image> read = DecodeImage(PngBytes(image));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->rows, rows);
    EXPECT_EQ(read->columns, columns);
    EXPECT_EQ(read->pixels, image.pixels) << rows << " x " << columns;
  }
}

TEST(DecodeImage, GreyBecomesColour) {
  const Image grey = PatternImage(6, 9, 1);
  const absl::StatusOr<Image> read = DecodeImage(PngBytes(grey));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->channels, 3);
  for (std::size_t at = 0; at < read->pixels.size(); ++at) {
    EXPECT_EQ(read->pixels[at], grey.pixels[at / 3]) << at;
  }
}

// Of gd's encoder (libjpeg), 48 x 32: e04020 on the left, 2060c0 on the right. Quantization and the conversion of
// colours leave fields that are flat beyond 8 pixels within 3 of what was drawn; limited range instead of full would be off by 10 and more.
TEST(DecodeImage, JpegHasTheColoursThatWereDrawn) {
  const absl::StatusOr<std::string> bytes = ReadWholeFile("data/images/testing/halves.jpg");
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const absl::StatusOr<Image> image = DecodeImage(*bytes);
  ASSERT_TRUE(image.ok()) << image.status();
  ASSERT_EQ(image->rows, 32);
  ASSERT_EQ(image->columns, 48);
  const auto expect = [&](std::int64_t row, std::int64_t column, std::vector<int> colour) {
    for (int c = 0; c < 3; ++c) {
      EXPECT_NEAR(image->pixels[(row * 48 + column) * 3 + c], colour[c], 3) << row << " " << column;
    }
  };
  for (const int row : {16, 22, 29}) {
    expect(row, 3, {0xe0, 0x40, 0x20});
    expect(row, 14, {0xe0, 0x40, 0x20});
    expect(row, 33, {0x20, 0x60, 0xc0});
    expect(row, 40, {0x20, 0x60, 0xc0});
  }
}

// Smooth colours, half as many rows and columns of chroma (4:2:0, as most JPEG files), and the pixels that Pillow
// reads. Pillow interpolates chroma by straight lines, here it is by cubics: 0.9 levels apart in the mean, 2.8 if rows
// are repeated, and 4 if 19 rows of chroma are stretched over 37 of luma.
TEST(DecodeImage, InterpolatesChroma) {
  for (const auto& [name, rows, columns] : {std::tuple("waves", 32, 32), std::tuple("waves_odd", 37, 53)}) {
    const std::string path = absl::StrCat("data/images/testing/", name);
    const absl::StatusOr<std::string> jpeg = ReadWholeFile(path + ".jpg"), png = ReadWholeFile(path + ".png");
    ASSERT_TRUE(jpeg.ok() && png.ok());
    const absl::StatusOr<Image> image = DecodeImage(*jpeg), expected = DecodeImage(*png);
    ASSERT_TRUE(image.ok() && expected.ok());
    EXPECT_EQ(image->rows, rows);
    EXPECT_EQ(image->columns, columns);
    ASSERT_EQ(image->pixels.size(), static_cast<std::size_t>(rows) * columns * 3);
    ASSERT_EQ(expected->pixels.size(), image->pixels.size());
    double sum = 0;
    for (std::size_t at = 0; at < image->pixels.size(); ++at) {
      sum += std::abs(image->pixels[at] - expected->pixels[at]);
    }
    EXPECT_LT(sum / static_cast<double>(image->pixels.size()), 1.5) << name;
  }
}

// Every level, rounded to the nearest of 8 bits: white is 65535, as it is 255.
TEST(DecodeImage, RoundsLevelsOf16Bits) {
  for (const int channels : {1, 2, 3, 4}) {
    std::vector<std::uint16_t> levels(std::size_t{256} * 256 * channels);
    // 40503 is odd: its multiples take every level before one comes again.
    for (std::size_t at = 0; at < levels.size(); ++at) levels[at] = static_cast<std::uint16_t>(40503 * at);
    const absl::StatusOr<Image> read = DecodeImage(PngBytes16(256, 256, channels, levels));
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_EQ(read->pixels.size(), std::size_t{256} * 256 * 3);
    std::size_t wrong = 0;
    for (std::size_t at = 0; at < read->pixels.size(); ++at) {
      const std::uint16_t level = levels[at / 3 * channels + (channels < 3 ? 0 : at % 3)];
      wrong += read->pixels[at] != std::lround(level / 257.0) ? 1 : 0;
    }
    EXPECT_EQ(wrong, 0u) << channels << " channels";
  }
}

TEST(DecodeImage, NamesWhatIsWrong) {
  const auto message = [](absl::string_view bytes) {
    return std::string(DecodeImage(bytes).status().message());
  };
  const std::string png = PngBytes(PatternImage(20, 30)),
                    jpeg = *ReadWholeFile("data/images/testing/halves.jpg");
  EXPECT_EQ(message(""), "neither a JPEG nor a PNG image");
  EXPECT_EQ(message("GIF89a"), "neither a JPEG nor a PNG image");
  EXPECT_EQ(message(png.substr(0, png.size() / 2)), "the image is damaged or cut short");
  EXPECT_EQ(message(png.substr(0, 20)), "the image is damaged or cut short");
  EXPECT_EQ(message(jpeg.substr(0, jpeg.size() / 2)), "the image is damaged or cut short");
  EXPECT_EQ(message(jpeg.substr(0, 4)), "the image is damaged or cut short");
  std::string changed = png;
  changed[png.size() / 2] ^= 4;
  EXPECT_EQ(message(changed), "the image is damaged or cut short");
}

// Sparse: it begins as an image, and takes no room on the disk.
TEST(ReadImage, RefusesMoreBytesThanFfmpegCounts) {
  const std::string path = Folder("large") + "/1.png";
  WriteFile(path, PngBytes(PatternImage(4, 6)));
  std::filesystem::resize_file(path, (std::uintmax_t{1} << 32) + 100);
  const std::string problem = "has 4294967396 bytes; expected no more than 1073741824";
  const absl::Status status = ReadImage(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), path + ": " + problem);
  const absl::StatusOr<MappedFile> file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(DecodeImage(file->bytes()).status().message(), problem);
}

// A pipe would be waited for.
TEST(ReadImage, TakesOnlyRegularFiles) {
  const std::string folder = Folder("pipe"), pipe = folder + "/train/cat/2.png",
                    device = folder + "/train/cat/3.png", link = folder + "/train/cat/4.png";
  for (const char* name : {"/train/cat/1.png", "/val/cat/1.png"}) {
    WriteFile(folder + name, PngBytes(PatternImage(4, 6)));
  }
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/null", device);
  std::filesystem::create_symlink("1.png", link);
  const absl::StatusOr<ImageSets> sets = FindClassFolders(folder);
  ASSERT_TRUE(sets.ok()) << sets.status();
  ASSERT_EQ(sets->train->samples(), 4);
  EXPECT_EQ(sets->train->Read(1).status().message(), pipe + ": expected a regular file");
  EXPECT_EQ(sets->train->Read(2).status().message(), device + ": expected a regular file");
  EXPECT_TRUE(sets->train->Read(3).ok());
}

TEST(ClassFolders, FindsTrainAndVal) {
  const std::string folder = Folder("split");
  const Image image = PatternImage(4, 6);
  WriteFile(folder + "/train/dog/1.png", PngBytes(image));
  WriteFile(folder + "/train/cat/b.PNG", PngBytes(image));
  WriteFile(folder + "/train/cat/a.png", PngBytes(PatternImage(3, 3)));
  WriteFile(folder + "/train/cat/notes.txt", "no image");
  WriteFile(folder + "/val/dog/1.png", PngBytes(image));
  const absl::StatusOr<ImageSets> sets = OpenImageSets({.data = folder});
  ASSERT_TRUE(sets.ok()) << sets.status();
  EXPECT_EQ(sets->class_names, (std::vector<std::string>{"cat", "dog"}));
  ASSERT_EQ(sets->train->samples(), 3);
  EXPECT_EQ(sets->train->Read(0)->rows, 3);
  EXPECT_EQ(sets->train->label(1), 0);
  EXPECT_EQ(sets->train->label(2), 1);
  EXPECT_EQ(sets->train->Read(2)->pixels, image.pixels);
  EXPECT_EQ(sets->test->samples(), 1);
  EXPECT_EQ(sets->rows, 0);
  WriteFile(folder + "/val/horse/1.png", PngBytes(image));
  EXPECT_THAT(std::string(FindClassFolders(folder).status().message()),
              HasSubstr("val/horse: not a class of the training set"));
}

TEST(ClassFolders, LeavesHiddenNamesOut) {
  const std::string folder = Folder("hidden");
  const std::string png = PngBytes(PatternImage(4, 6));
  for (const char* name : {"train/cat/1.png", "train/cat/._1.png", "train/.ipynb_checkpoints/1.png",
                           "train/dog/1.png", "val/cat/1.png", "val/.cache/1.png"}) {
    WriteFile(absl::StrCat(folder, "/", name), png);
  }
  const absl::StatusOr<ImageSets> sets = OpenImageSets({.data = folder});
  ASSERT_TRUE(sets.ok()) << sets.status();
  EXPECT_EQ(sets->class_names, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(sets->train->samples(), 2);
  EXPECT_EQ(sets->test->samples(), 1);
  std::filesystem::create_directories(folder + "/train/cow");
  EXPECT_THAT(std::string(FindClassFolders(folder).status().message()),
              HasSubstr("train/cow: a class without images"));
}

// Without folders for training and testing, one image in ten is a test image, which its name decides.
TEST(ClassFolders, EachClassHasTrainingImages) {
  const std::string folder = Folder("unsplit");
  const std::string png = PngBytes(PatternImage(4, 6));
  for (int i = 0; i < 60; ++i) WriteFile(absl::StrCat(folder, "/many/", i, ".png"), png);
  int refused = 0, taken = 0;
  for (int i = 0; i < 60; ++i) {
    const std::string one = absl::StrCat(folder, "/one/", i, ".png");
    WriteFile(one, png);
    const absl::StatusOr<ImageSets> sets = FindClassFolders(folder);
    std::filesystem::remove(one);
    if (sets.ok()) {
      EXPECT_EQ(sets->train->label(sets->train->samples() - 1), 1);
      ++taken;
      continue;
    }
    EXPECT_THAT(std::string(sets.status().message()),
                HasSubstr("one: too few images, all of them are among"));
    ++refused;
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(taken, 30);
}

TEST(ClassFolders, AFewOfThemAreOfAllClasses) {
  const std::string folder = Folder("few");
  for (int i = 0; i < 20; ++i) {
    WriteFile(absl::StrCat(folder, "/train/k", i / 5, "/", i, ".png"), PngBytes(PatternImage(1, 1 + i)));
  }
  WriteFile(folder + "/val/k0/1.png", PngBytes(PatternImage(1, 1)));
  const absl::StatusOr<ImageSets> sets = FindClassFolders(folder);
  ASSERT_TRUE(sets.ok()) << sets.status();
  EXPECT_TRUE(sets->sorted);
  const std::shared_ptr<const ImageSource> few = SpacedOf(sets->train, 4);
  ASSERT_EQ(few->samples(), 4);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(few->label(i), i);
    EXPECT_EQ(few->Read(i)->columns, 1 + 5 * i);
  }
  EXPECT_EQ(SpacedOf(sets->train, 20), sets->train);
  EXPECT_EQ(FirstOf(sets->train, 6)->label(5), 1);
}

// A tenth by the files' names, wherever the folder is.
TEST(ClassFolders, SplitsOneFolderByNames) {
  std::set<std::string> tests[2];
  for (int copy = 0; copy < 2; ++copy) {
    const std::string folder = Folder(absl::StrCat("one", copy));
    for (int i = 0; i < 400; ++i) {
      // As the image's width says which it is.
      WriteFile(absl::StrCat(folder, "/k", i % 4, "/", i, ".png"), PngBytes(PatternImage(1, 1 + i)));
    }
    const absl::StatusOr<ImageSets> sets = OpenImageSets({.data = folder});
    ASSERT_TRUE(sets.ok()) << sets.status();
    EXPECT_EQ(sets->train->samples() + sets->test->samples(), 400);
    // Six deviations of a tenth of 400.
    EXPECT_NEAR(static_cast<double>(sets->test->samples()), 40, 36);
    for (std::int64_t i = 0; i < sets->test->samples(); ++i) {
      const std::int64_t number = sets->test->Read(i)->columns - 1;
      EXPECT_EQ(sets->test->label(i), number % 4);
      tests[copy].insert(absl::StrCat(number));
    }
  }
  EXPECT_EQ(tests[0], tests[1]);
}

TEST(ClassFolders, NamesWhatIsMissing) {
  const std::string folder = Folder("empty");
  EXPECT_THAT(std::string(OpenImageSets({.data = folder}).status().message()),
              HasSubstr("empty: no such folder; expected fake, or a folder of images"));
  std::filesystem::create_directories(folder + "/cat");
  EXPECT_THAT(std::string(OpenImageSets({.data = folder}).status().message()),
              HasSubstr("empty: 0 training and 0 test images found; expected CIFAR-10's"));
  WriteFile(folder + "/train/cat/a.jpg", "no image");
  WriteFile(folder + "/val/cat/a.jpg", "no image");
  const absl::StatusOr<ImageSets> sets = OpenImageSets({.data = folder});
  ASSERT_TRUE(sets.ok()) << sets.status();
  EXPECT_EQ(sets->train->Read(0).status().message(),
            folder + "/train/cat/a.jpg: neither a JPEG nor a PNG image");
  WriteFile(folder + "/train-images-idx3-ubyte", "");
  EXPECT_THAT(std::string(OpenImageSets({.data = folder}).status().message()),
              HasSubstr("empty: train-labels-idx1-ubyte is missing, plain or .gz"));
}

}  // namespace
}  // namespace plait::data
