// Initial values of parameters that may be split over ranks: the whole tensor is drawn, as one process would
// draw it, and the rank keeps its part. No effect on the meta device or for undefined tensors.
#ifndef PLAIT_MODELS_INITIAL_VALUES_H_
#define PLAIT_MODELS_INITIAL_VALUES_H_

#include <ATen/core/Tensor.h>

#include "models/placement.h"

namespace plait::models {

// Normal with mean 0 and standard deviation `deviation`, truncated at +-`cut` standard deviations if `cut` > 0. Drawn
// in float32 from LibTorch's CPU generator whatever dtype and device `parameter` has. Allocates the whole tensor.
void DrawNormal(const at::Tensor& parameter, const Placement& placement, double deviation, double cut = 0);
void Fill(const at::Tensor& parameter, double value);

}  // namespace plait::models

#endif  // PLAIT_MODELS_INITIAL_VALUES_H_
