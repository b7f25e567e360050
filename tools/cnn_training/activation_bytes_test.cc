// What the plan says of activations against what LibTorch's allocator was asked for.
#include "tools/cnn_training/activation_bytes.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "tools/image_training/testing/counting_allocator.h"

namespace plait::cnn_training {
namespace {

using image_training::CountingAllocator;

// Bytes of a sample in the second of two passes, at most at once: gradients of parameters are there then.
double MeasuredPeak(const cnn::CnnOptions& options, bool with_backward) {
  constexpr std::int64_t kSamples = 256;
  cnn::Cnn model(options, at::kFloat);
  const at::Tensor y = at::zeros({kSamples}, at::kLong);
  const at::AutoGradMode recording(with_backward);
  std::int64_t before = 0;
  for (int pass = 0; pass < 2; ++pass) {
    before = CountingAllocator::live();
    CountingAllocator::ResetPeak();
    const at::Tensor scores = model.Forward(at::ones({kSamples, 1, options.rows, options.columns}));
    if (with_backward) at::nll_loss(scores, y).backward();
  }
  return static_cast<double>(CountingAllocator::peak() - before) / kSamples;
}

TEST(SampleBytes, AreThoseThatLibTorchAsksFor) {
  static CountingAllocator counting;
  c10::SetCPUAllocator(&counting, /*priority=*/100);
  for (const cnn::CnnOptions& options :
       {cnn::CnnOptions{}, cnn::CnnOptions{.rows = 40, .columns = 20, .conv1_channels = 8, .hidden = 500}}) {
    // Gradients and copies of weights, some megabytes, are spread over the samples.
    const auto training = static_cast<double>(ActivationBytes(options, at::kFloat));
    EXPECT_NEAR(MeasuredPeak(options, /*with_backward=*/true), training, 0.02 * training);
    const auto evaluation = static_cast<double>(EvaluationBytes(options, at::kFloat));
    EXPECT_NEAR(MeasuredPeak(options, /*with_backward=*/false), evaluation, 0.02 * evaluation);
  }
}

}  // namespace
}  // namespace plait::cnn_training
