// A synthetic stand-in for human-activity recordings, for machines that have neither the archive nor a
// network.
#ifndef PLAIT_DATA_HAR_SYNTHETIC_H_
#define PLAIT_DATA_HAR_SYNTHETIC_H_

#include <cstdint>

#include "data/sequence_set.h"

namespace plait::data {

// Windows of 128 steps and 9 channels at 50 Hz, six classes in equal parts: three gaits (sums of two
// sinusoids of a class's own pace and strength) and three postures (gravity's direction, slight sway), with
// person-like variation and noise. Learnable, and no more: results on it say nothing about people. The same
// on every machine for the same seed up to the rounding of sin and log. `synthetic` is set.
SequenceSet SyntheticHar(std::int64_t train_samples, std::int64_t test_samples, std::uint64_t seed);

}  // namespace plait::data

#endif  // PLAIT_DATA_HAR_SYNTHETIC_H_
