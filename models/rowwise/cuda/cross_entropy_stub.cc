#include "models/rowwise/cuda/cross_entropy.h"

namespace plait::rowwise::cuda {

bool HasCrossEntropy() { return false; }

const char* CrossEntropyForward(const LogitRows&, float*, float*, float*) { return "built without CUDA"; }

const char* CrossEntropyBackward(const LogitRows&, const float*, const float*, const float*, void*) {
  return "built without CUDA";
}

}  // namespace plait::rowwise::cuda
