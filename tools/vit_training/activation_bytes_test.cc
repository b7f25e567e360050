// What the plan says of activations against what LibTorch's allocator was asked for.
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tools/image_training/testing/counting_allocator.h"
#include "tools/vit_training/vit_task.h"

namespace plait::vit_training {
namespace {

using image_training::CountingAllocator;

// Bytes of an image in the second of two passes, at most at once: gradients of parameters are there then.
double MeasuredPeak(const vit::VitOptions& options, at::ScalarType type) {
  constexpr std::int64_t kImages = 32;
  vit::Vit model(options, type);
  const at::Tensor labels = at::zeros({kImages}, at::kLong);
  std::int64_t before = 0;
  for (int pass = 0; pass < 2; ++pass) {
    before = CountingAllocator::live();
    CountingAllocator::ResetPeak();
    const at::Tensor images =
        at::ones({kImages, options.channels, options.image_size, options.image_size}, type);
    models::RunModel(model, {images, labels}).sum.backward();
  }
  return static_cast<double>(CountingAllocator::peak() - before) / kImages;
}

TEST(ActivationBytes, AreThoseThatLibTorchAsksFor) {
  static CountingAllocator counting;
  c10::SetCPUAllocator(&counting, /*priority=*/100);
  vit::VitOptions options = *vit::PresetNamed("cpu");
  for (const vit::Attention attention : {vit::Attention::kSdpa, vit::Attention::kMath}) {
    for (const double dropout : {0.0, 0.1}) {
      for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
        options.attention = attention;
        options.dropout = dropout;
        const auto planned = static_cast<double>(
            ActivationBytesPerImage(options, static_cast<std::int64_t>(c10::elementSize(type)), 0));
        // Gradients and copies of weights are spread over the images. Without own kernels float32 keeps no
        // probabilities, a ninth of all.
        const double measured = MeasuredPeak(options, type);
        const std::string what = absl::StrCat(c10::toString(type), ", dropout ", dropout, ", math ",
                                              attention == vit::Attention::kMath);
        EXPECT_LE(measured, 1.1 * planned) << what;
        EXPECT_GE(measured, 0.8 * planned) << what;
      }
    }
  }
}

}  // namespace
}  // namespace plait::vit_training
