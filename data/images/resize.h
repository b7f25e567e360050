// Bilinear resizing with antialiasing (a triangle filter, widened when shrinking), as in PIL and in torchvision with
// antialias=True. Local.
#ifndef PLAIT_DATA_IMAGES_RESIZE_H_
#define PLAIT_DATA_IMAGES_RESIZE_H_

#include <cstdint>
#include <vector>

#include "data/images/image_source.h"

namespace plait::data {

// Resizes one channel from (rows, columns) to (to_rows, to_columns); the values are not rounded.
std::vector<double> ResizedPlane(const std::vector<std::uint8_t>& plane, std::int64_t rows,
                                 std::int64_t columns, std::int64_t to_rows, std::int64_t to_columns);

// As torchvision's Resize(size), which makes the shorter side `size`, then CenterCrop(size). Pixels are rounded to the
// nearest integer. CHECK-fails for an empty image or size < 1.
Image MiddleSquare(const Image& image, std::int64_t size);

}  // namespace plait::data

#endif  // PLAIT_DATA_IMAGES_RESIZE_H_
