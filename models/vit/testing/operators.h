// A vision transformer written in LibTorch's operators on the parameters of a model, as a reference for tests.
#ifndef PLAIT_MODELS_VIT_TESTING_OPERATORS_H_
#define PLAIT_MODELS_VIT_TESTING_OPERATORS_H_

#include <ATen/core/Tensor.h>

#include "models/vit/vit.h"

namespace plait::vit::testing {

// Returns logits (batch, classes), recorded by autograd with respect to the model's parameters; without dropout. The
// embedding is a convolution, attention is computed head by head.
at::Tensor LogitsByOperators(const Vit& vit, const at::Tensor& images);

}  // namespace plait::vit::testing

#endif  // PLAIT_MODELS_VIT_TESTING_OPERATORS_H_
