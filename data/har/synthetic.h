// Synthetic human-activity windows, for machines that have neither the archive nor a network.
#ifndef PLAIT_DATA_HAR_SYNTHETIC_H_
#define PLAIT_DATA_HAR_SYNTHETIC_H_

#include <cstdint>

#include "data/sequence_set.h"

namespace plait::data {

// Windows of 128 steps and 9 channels at 50 Hz, six classes in equal parts: three gaits (sums of two
// sinusoids with a pace and strength per class) and three postures (gravity's direction, slight sway), with
// variation and noise per window. Learnable, but no benchmark of accuracy: results say nothing about people.
// Deterministic for a given seed, up to rounding of sin and log. `synthetic` is set.
SequenceSet SyntheticHar(std::int64_t train_samples, std::int64_t test_samples, std::uint64_t seed);

}  // namespace plait::data

#endif  // PLAIT_DATA_HAR_SYNTHETIC_H_
