#include "tools/cnn_training/activation_bytes.h"

#include <algorithm>

namespace plait::cnn_training {
namespace {

// Elements of a sample.
struct Sizes {
  std::int64_t image, first, second, pooled;
};

Sizes SizesOf(const cnn::CnnOptions& o) {
  return {.image = o.rows * o.columns,
          .first = o.conv1_channels * (o.rows - 2) * (o.columns - 2),
          .second = o.conv2_channels * (o.rows - 4) * (o.columns - 4),
          .pooled = o.conv2_channels * ((o.rows - 4) / 2) * ((o.columns - 4) / 2)};
}

}  // namespace

std::int64_t ActivationBytes(const cnn::CnnOptions& options, at::ScalarType type) {
  const Sizes n = SizesOf(options);
  // At the end of forward: the image, what the relus gave, dropout's results, and the pool's places (int64).
  const std::int64_t kept = n.image + n.first + n.second + n.pooled + 2 * options.hidden + options.classes;
  // In backward through the second relu: gradients on both sides of it.
  const std::int64_t relu = n.image + n.first + 3 * n.second;
  // In backward through the second convolution: gradients on both sides of it, and oneDNN's copies of what
  // it reads in its own layout.
  const std::int64_t convolution = n.image + 3 * n.first + 2 * n.second;
  const auto bytes = static_cast<std::int64_t>(c10::elementSize(type));
  return std::max({kept * bytes + n.pooled * 8, relu * bytes, convolution * bytes});
}

std::int64_t EvaluationBytes(const cnn::CnnOptions& options, at::ScalarType type) {
  const Sizes n = SizesOf(options);
  // In the second relu: both sides of it, and what the convolution before it has read.
  return (n.image + n.first + 2 * n.second) * static_cast<std::int64_t>(c10::elementSize(type));
}

}  // namespace plait::cnn_training
