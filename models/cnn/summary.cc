#include "models/cnn/summary.h"

#include <utility>

namespace plait::cnn {
namespace {

using models::Layer;

constexpr std::int64_t kKernelElements = 9;

// mult-adds: weights and bias at every pixel of the output.
Layer Conv(std::int64_t in, std::vector<std::int64_t> shape) {
  const std::int64_t parameters = (in * kKernelElements + 1) * shape[1];
  const std::int64_t places = shape[0] * shape[2] * shape[3];
  return {.type = "Conv2d",
          .output_shape = std::move(shape),
          .parameters = parameters,
          .mult_adds = places * parameters};
}

}  // namespace

models::Layer LayersOf(const CnnOptions& options, std::int64_t batch) {
  const std::int64_t rows = options.rows - 4, columns = options.columns - 4;
  const std::vector<std::int64_t> pooled = {batch, options.conv2_channels, rows / 2, columns / 2};
  const std::int64_t features = pooled[1] * pooled[2] * pooled[3];
  return {.type = "Net",
          .output_shape = {batch, options.classes},
          .children = {Conv(1, {batch, options.conv1_channels, rows + 2, columns + 2}),
                       Conv(options.conv1_channels, {batch, options.conv2_channels, rows, columns}),
                       {.type = "Dropout", .output_shape = pooled},
                       models::LinearLayer({batch, options.hidden}, features, true),
                       {.type = "Dropout", .output_shape = {batch, options.hidden}},
                       models::LinearLayer({batch, options.classes}, options.hidden, true)}};
}

}  // namespace plait::cnn
