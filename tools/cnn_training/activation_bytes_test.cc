// What the plan says of activations against what LibTorch's allocator was asked for.
#include "tools/cnn_training/activation_bytes.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace plait::cnn_training {
namespace {

// Counts live bytes; the size stands before the memory.
class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    char* const block =
        static_cast<char*>(std::aligned_alloc(kRoom, (bytes + 2 * kRoom - 1) / kRoom * kRoom));
    std::memcpy(block, &bytes, sizeof(bytes));
    live_ += static_cast<std::int64_t>(bytes);
    peak_ = std::max(peak_, live_);
    return {block + kRoom, block + kRoom, &Free, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  static std::int64_t live() { return live_; }
  static std::int64_t peak() { return peak_; }
  static void ResetPeak() { peak_ = live_; }

 private:
  static constexpr std::size_t kRoom = 64;
  static void Free(void* memory) {
    if (memory == nullptr) return;
    char* const block = static_cast<char*>(memory) - kRoom;
    std::size_t bytes = 0;
    std::memcpy(&bytes, block, sizeof(bytes));
    live_ -= static_cast<std::int64_t>(bytes);
    std::free(block);
  }
  static inline std::int64_t live_ = 0, peak_ = 0;
};

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
