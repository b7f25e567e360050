// Synthetic images of digits, for machines that have no image data.
#ifndef PLAIT_DATA_IDX_SYNTHETIC_IMAGES_H_
#define PLAIT_DATA_IDX_SYNTHETIC_IMAGES_H_

#include <cstdint>

#include "data/idx/image_set.h"

namespace plait::data {

// Images of 28 x 28: the digits of a seven-segment display, light on dark, moved, slanted, of varying size,
// stroke and brightness, with noise; sample i has class i mod 10. Learnable, but no benchmark of accuracy: results
// say nothing about handwriting. Deterministic for a given seed. `synthetic` is set.
ImageSet SyntheticImages(std::int64_t train_samples, std::int64_t test_samples, std::uint64_t seed);

}  // namespace plait::data

#endif  // PLAIT_DATA_IDX_SYNTHETIC_IMAGES_H_
