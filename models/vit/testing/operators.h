// A vision transformer written out in LibTorch's operators, from the parameters of a model: for tests.
#ifndef PLAIT_MODELS_VIT_TESTING_OPERATORS_H_
#define PLAIT_MODELS_VIT_TESTING_OPERATORS_H_

#include <ATen/core/Tensor.h>

#include "models/vit/vit.h"

namespace plait::vit::testing {

// Logits (batch, classes) of images, recorded by autograd down to the model's parameters; without dropout. The
// embedding is a convolution, attention one head at a time.
at::Tensor LogitsByOperators(const Vit& vit, const at::Tensor& images);

}  // namespace plait::vit::testing

#endif  // PLAIT_MODELS_VIT_TESTING_OPERATORS_H_
