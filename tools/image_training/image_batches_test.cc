// Batches against LibTorch's own resizing, and files that cannot be read.
#include "tools/image_training/image_batches.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace plait::image_training {
namespace {

class Images final : public data::ImageSource {
 public:
  Images(std::int64_t rows, std::int64_t columns) : rows_(rows), columns_(columns) {}
  std::int64_t samples() const override { return 5; }
  std::int64_t label(std::int64_t index) const override { return 10 + index; }
  absl::StatusOr<data::Image> Read(std::int64_t index) const override {
    if (index == 3) return absl::DataLossError("c/3.png: the image is damaged or cut short");
    data::Image image = {rows_, columns_, 3, {}};
    for (std::int64_t at = 0; at < rows_ * columns_ * 3; ++at) {
      image.pixels.push_back(static_cast<std::uint8_t>(37 * at + at / 256 + index));
    }
    return image;
  }

 private:
  std::int64_t rows_, columns_;
};

const data::ChannelScale kScale = {{0.5, 0.25, 0}, {0.5, 2, 1}};

// (channels, rows, columns), normalized, float64.
at::Tensor TensorOf(const data::Image& image) {
  at::Tensor x = at::empty({3, image.rows, image.columns}, at::kDouble);
  for (std::int64_t c = 0; c < 3; ++c) {
    for (std::int64_t at = 0; at < image.rows * image.columns; ++at) {
      x[c].view({-1})[at] = (image.pixels[3 * at + c] / 255.0 - kScale.mean[c]) / kScale.deviation[c];
    }
  }
  return x;
}

// Shrinks, grows, both; normalizing and resizing commute, as weights sum to one. LibTorch rounds weights to float32.
TEST(ImageBatches, ResizesAsLibTorch) {
  for (const auto& [rows, columns, size] :
       {std::tuple(31, 31, 16), std::tuple(24, 40, 7), std::tuple(9, 9, 20), std::tuple(12, 11, 11)}) {
    const auto source = std::make_shared<Images>(rows, columns);
    ImageBatches batches(source, {.size = size, .scale = kScale}, at::kFloat);
    const models::Batch batch = batches.Make({2});
    const std::int64_t side = std::min(rows, columns);
    const at::Tensor middle = TensorOf(*source->Read(2))
                                  .narrow(1, (rows - side) / 2, side)
                                  .narrow(2, (columns - side) / 2, side)
                                  .unsqueeze(0);
    const at::Tensor expected = at::_upsample_bilinear2d_aa(middle, {size, size}, /*align_corners=*/false);
    EXPECT_LT((batch.inputs.to(at::kDouble) - expected).abs().max().item<double>(), 4 * 0x1p-23) << rows;
  }
}

TEST(ImageBatches, KeepsImagesAsTheyAre) {
  const auto source = std::make_shared<Images>(4, 6);
  ImageBatches batches(source, {.size = 0, .scale = kScale}, at::kDouble);
  const models::Batch batch = batches.Make({4, 1});
  EXPECT_EQ(batch.inputs.sizes(), (std::vector<std::int64_t>{2, 3, 4, 6}));
  EXPECT_LT((batch.inputs[1] - TensorOf(*source->Read(1))).abs().max().item<double>(), 0x1p-23);
  EXPECT_EQ(batch.targets[0].item<std::int64_t>(), 14);
  EXPECT_EQ(batches.Make({}).inputs.sizes(), (std::vector<std::int64_t>{0, 3, 4, 6}));
}

TEST(ImageBatches, IgnoresWhatCannotBeRead) {
  ImageBatches batches(std::make_shared<Images>(4, 4), {.size = 4, .scale = kScale}, at::kFloat);
  EXPECT_TRUE(batches.Make({0, 1}).targets.ge(0).all().item<bool>());
  EXPECT_TRUE(batches.status().ok());
  const models::Batch batch = batches.Make({2, 3, 4});
  EXPECT_EQ(batch.targets[1].item<std::int64_t>(), -1);
  EXPECT_EQ(batch.targets[2].item<std::int64_t>(), 14);
  EXPECT_EQ(batch.inputs[1].abs().sum().item<float>(), 0);
  EXPECT_EQ(batches.status().message(), "c/3.png: the image is damaged or cut short");
}

// What is drawn depends on the epoch, and not on the other samples of the batch.
TEST(ImageBatches, AugmentsByEpoch) {
  ImageBatches batches(
      std::make_shared<Images>(40, 40),
      {.size = 8, .augmentation = data::Augmentation::kResizedCrop, .seed = 3, .scale = kScale}, at::kFloat);
  const at::Tensor first = batches.Make({0, 1}, 0).inputs, second = batches.Make({0, 1}, 1).inputs;
  EXPECT_FALSE(first.equal(second));
  EXPECT_TRUE(batches.Make({1}, 0).inputs[0].equal(first[1]));
}

}  // namespace
}  // namespace plait::image_training
