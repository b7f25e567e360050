// Initial values of parameters that may be parts of a split tensor: the whole is drawn, as one process would,
// and the rank keeps its part. Nothing happens on the meta device, or for undefined tensors.
#ifndef PLAIT_MODELS_INITIAL_VALUES_H_
#define PLAIT_MODELS_INITIAL_VALUES_H_

#include <ATen/core/Tensor.h>

#include "models/placement.h"

namespace plait::models {

// Normal numbers of mean 0, cut at `cut` deviations where that is positive, drawn in float32 from LibTorch's
// CPU generator whatever type and device `parameter` has. Needs memory for the whole tensor.
void DrawNormal(const at::Tensor& parameter, const Placement& placement, double deviation, double cut = 0);
void Fill(const at::Tensor& parameter, double value);

}  // namespace plait::models

#endif  // PLAIT_MODELS_INITIAL_VALUES_H_
