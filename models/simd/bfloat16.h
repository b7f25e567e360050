// A bfloat16 in memory: the upper half of a float32.
#ifndef PLAIT_MODELS_SIMD_BFLOAT16_H_
#define PLAIT_MODELS_SIMD_BFLOAT16_H_

#include <cstdint>

namespace plait::simd {

struct BFloat16 {
  std::uint16_t bits;
};

}  // namespace plait::simd

#endif  // PLAIT_MODELS_SIMD_BFLOAT16_H_
