#include "data/checkpoint/tensor_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/seed.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/file.h"

namespace plait::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

// A small model's worth: every type, a scalar, an empty tensor, awkward bit patterns.
struct Model {
  std::vector<float> weight = {1.5f, -0.0f, 3e-45f, __builtin_nanf("7"), 5, 6};
  std::vector<double> moment = {1e300, -2, __builtin_inf()};
  std::vector<std::uint16_t> bf16 = {0x3f80, 0x7fc1};
  std::vector<std::uint16_t> fp16 = {0x3c00};
  std::int64_t step = std::int64_t{1} << 60;
  std::vector<std::int32_t> ints = {-1, 2};
  std::vector<std::uint8_t> rng = std::vector<std::uint8_t>(5000, 0xab);
  std::uint8_t flag = 1;

  std::vector<TensorView> Views() const {
    return {{"z.weight", DType::kFloat32, {2, 3}, weight.data()},
            {"a.moment", DType::kFloat64, {3}, moment.data()},
            {"bf16", DType::kBFloat16, {1, 2}, bf16.data()},
            {"fp16", DType::kFloat16, {1}, fp16.data()},
            {"step", DType::kInt64, {}, &step},
            {"ints", DType::kInt32, {2, 1, 1}, ints.data()},
            {"rng", DType::kUint8, {5000}, rng.data()},
            {"flag", DType::kBool, {}, &flag},
            {"nothing", DType::kFloat32, {0, 4}, nullptr}};
  }
};

std::string Written(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name;
  const absl::Status status =
      WriteTensorArchive(path, Model().Views(), {{"config", "{\"hidden\": 100}"}, {"empty", ""}});
  EXPECT_TRUE(status.ok()) << status;
  return path;
}

// Bit for bit, as an exact resume needs.
TEST(TensorArchive, EveryTypeComesBackBitForBit) {
  const Model model;
  const TensorArchive archive = *TensorArchive::Open(Written("types.h5"));
  EXPECT_THAT(archive.names(),
              ElementsAre("z.weight", "a.moment", "bf16", "fp16", "step", "ints", "rng", "flag", "nothing"));
  for (const TensorView& view : model.Views()) {
    std::int64_t bytes = ElementBytes(view.dtype);
    for (const std::int64_t extent : view.shape) bytes *= extent;
    std::vector<char> read(bytes + 1, 'x');
    const absl::Status status = archive.ReadInto(view.name, view.dtype, view.shape, read.data());
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_TRUE(bytes == 0 || std::memcmp(read.data(), view.data, bytes) == 0) << view.name;
    EXPECT_EQ(read[bytes], 'x') << "wrote past the end";
  }
  EXPECT_EQ(archive.Info("z.weight")->shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(archive.Info("bf16")->dtype, DType::kBFloat16);
  EXPECT_EQ(*archive.Text("config"), "{\"hidden\": 100}");
  EXPECT_EQ(*archive.Text("empty"), "");
  EXPECT_TRUE(archive.HasText("config"));
  EXPECT_FALSE(archive.HasText("sampler"));
  EXPECT_TRUE(archive.Verify().ok());
}

TEST(TensorArchive, LongTextsAndNoTensors) {
  const std::string path = testing::TempDir() + "/texts.h5";
  const std::string text(300000, 'q');
  ASSERT_TRUE(WriteTensorArchive(path, {}, {{"long", text}}).ok());
  EXPECT_EQ(*TensorArchive::Open(path)->Text("long"), text);
  EXPECT_TRUE(TensorArchive::Open(path)->names().empty());
}

TEST(TensorArchive, WhatDoesNotFitIsNamed) {
  const TensorArchive archive = *TensorArchive::Open(Written("fit.h5"));
  float room[6] = {9, 9, 9, 9, 9, 9};
  const absl::Status shape = archive.ReadInto("z.weight", DType::kFloat32, {3, 2}, room);
  EXPECT_EQ(shape.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(shape.message()),
              AllOf(HasSubstr("fit.h5"), HasSubstr("z.weight is float32 (2, 3), expected float32 (3, 2)")));
  const absl::Status type = archive.ReadInto("z.weight", DType::kInt32, {2, 3}, room);
  EXPECT_THAT(std::string(type.message()), HasSubstr("expected int32 (2, 3)"));
  EXPECT_EQ(room[0], 9);
  const absl::Status missing = archive.ReadInto("w2", DType::kFloat32, {1}, room);
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), AllOf(HasSubstr("fit.h5"), HasSubstr("w2")));
  EXPECT_EQ(archive.Text("nothing").status().code(), absl::StatusCode::kNotFound);
}

TEST(TensorArchive, NamesMustBeUsable) {
  const float x = 1;
  const std::string path = testing::TempDir() + "/bad_names.h5";
  const TensorView good{"a", DType::kFloat32, {}, &x};
  for (const char* name : {"", "a/b", "."}) {
    EXPECT_EQ(WriteTensorArchive(path, {{name, DType::kFloat32, {}, &x}}, {}).code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(std::string(WriteTensorArchive(path, {good, good}, {}).message()), HasSubstr("two tensors"));
  EXPECT_FALSE(fs::exists(path));
}

TEST(TensorArchive, ForeignTruncatedAndNewerFilesAreNamed) {
  const std::string path = Written("foreign.h5");
  const auto message = [&] {
    const absl::Status status = TensorArchive::Open(path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    return std::string(status.message());
  };
  {
    File file = *File::Open(path, File::Mode::kReadWrite);
    ASSERT_TRUE(SetAttribute(file, "/", "format_version", std::int64_t{2}).ok());
  }
  EXPECT_THAT(message(), HasSubstr("format 2, expected 1"));
  fs::resize_file(path, fs::file_size(path) - 10);
  EXPECT_THAT(message(), HasSubstr("truncated"));
  std::ofstream(path, std::ios::trunc) << "torch.save";
  EXPECT_THAT(message(), HasSubstr("not an HDF5 file"));
  ASSERT_TRUE(File::Create(path)->Close().ok());
  EXPECT_THAT(message(), HasSubstr("not a checkpoint"));
}

TEST(TensorArchive, AFlippedBitNamesItsTensor) {
  const std::string path = Written("flipped.h5");
  std::string bytes = *ReadWholeFile(path);
  const std::size_t at = bytes.find(std::string(100, '\xab'));
  ASSERT_NE(at, std::string::npos);
  bytes[at + 50] ^= 4;
  std::ofstream(path, std::ios::binary) << bytes;
  const TensorArchive archive = *TensorArchive::Open(path);
  std::vector<std::uint8_t> rng(5000);
  const absl::Status status = archive.ReadInto("rng", DType::kUint8, {5000}, rng.data());
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("flipped.h5"), HasSubstr("rng"), HasSubstr("checksum")));
  EXPECT_FALSE(archive.Verify().ok());
}

// Wherever a bit flips, in numbers or in HDF5's own structures: either an error, or every tensor and text as
// written.
TEST(TensorArchive, NoFlippedBitChangesANumberUnseen) {
  const std::string path = Written("anywhere.h5");
  const std::string good = *ReadWholeFile(path);
  base::RandomStream random(5);
  int found = 0;
  for (int trial = 0; trial < 400; ++trial) {
    std::string bytes = good;
    bytes[random.Below(bytes.size())] ^= static_cast<char>(1 << random.Below(8));
    std::ofstream(path, std::ios::binary) << bytes;
    const absl::StatusOr<TensorArchive> archive = TensorArchive::Open(path);
    if (!archive.ok() || !archive->Verify().ok()) {
      ++found;
      continue;
    }
    for (const TensorView& view : Model().Views()) {
      const absl::StatusOr<TensorInfo> info = archive->Info(view.name);
      ASSERT_TRUE(info.ok() && info->dtype == view.dtype && info->shape == view.shape) << view.name;
    }
    ASSERT_EQ(*archive->Text("config"), "{\"hidden\": 100}");
  }
  EXPECT_GT(found, 200) << "most bytes matter";
}

// A limit on the size of files acts as a full disk, wherever it strikes: in HDF5's own structures, in the
// elements, in the last byte. The process goes on and can write again.
TEST(TensorArchive, AFullDiskIsOneLineAndKeepsTheLastGoodOne) {
  const std::string path = Written("kept.h5");
  const std::string before = *ReadWholeFile(path);
  const std::vector<double> big(100000, 0.5);
  const auto write = [&] {
    return WriteTensorArchive(path, {{"big", DType::kFloat64, {100000}, big.data()}}, {{"text", "t"}});
  };
  signal(SIGXFSZ, SIG_IGN);
  for (const rlim_t bytes : {rlim_t{0}, rlim_t{100}, rlim_t{3000}, rlim_t{20000}, rlim_t{800000}}) {
    rlimit limit_before{};
    getrlimit(RLIMIT_FSIZE, &limit_before);
    const rlimit limit{bytes, limit_before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    const absl::Status full = write();
    setrlimit(RLIMIT_FSIZE, &limit_before);
    EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << bytes << ": " << full;
    EXPECT_THAT(std::string(full.message()),
                AllOf(HasSubstr(path + " not written: "), HasSubstr("no room for"), Not(HasSubstr("\n"))));
    EXPECT_EQ(*ReadWholeFile(path), before) << bytes;
  }
  ASSERT_TRUE(write().ok());
  EXPECT_TRUE(TensorArchive::Open(path)->Verify().ok());
  std::vector<double> read(100000);
  EXPECT_TRUE(TensorArchive::Open(path)->ReadInto("big", DType::kFloat64, {100000}, read.data()).ok());
  EXPECT_EQ(read, big);
}

}  // namespace
}  // namespace plait::data
