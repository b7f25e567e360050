// Resizing: bilinear and, where it shrinks, averaging over all pixels under a triangle, as PIL and torchvision's
// antialias do. Local.
#ifndef PLAIT_DATA_IMAGES_RESIZE_H_
#define PLAIT_DATA_IMAGES_RESIZE_H_

#include <cstdint>
#include <vector>

#include "data/images/image_source.h"

namespace plait::data {

// One channel: (rows, columns) to (to_rows, to_columns), not rounded.
std::vector<double> ResizedPlane(const std::vector<std::uint8_t>& plane, std::int64_t rows,
                                 std::int64_t columns, std::int64_t to_rows, std::int64_t to_columns);

// torchvision's Resize(size), by which the shorter side becomes `size`, and CenterCrop(size): (size, size). Pixels are
// rounded to the nearest.
Image MiddleSquare(const Image& image, std::int64_t size);

}  // namespace plait::data

#endif  // PLAIT_DATA_IMAGES_RESIZE_H_
