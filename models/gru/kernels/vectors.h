// Names of models/simd that the kernels use throughout.
#ifndef PLAIT_MODELS_GRU_KERNELS_VECTORS_H_
#define PLAIT_MODELS_GRU_KERNELS_VECTORS_H_

#include "models/simd/products.h"
#include "models/simd/tile.h"
#include "models/simd/vector_math.h"

namespace plait::gru {
namespace {

using simd::Accumulate;
using simd::Family;
using simd::Fma;
using simd::Index;
using simd::kLanes;
using simd::Lane;
using simd::Load;
using simd::Splat;
using simd::Store;
using simd::Tile;

}  // namespace
}  // namespace plait::gru

#endif  // PLAIT_MODELS_GRU_KERNELS_VECTORS_H_
