// The right-hand side F(u; theta) of an OdeNet, and its linear maps.
#ifndef PLAIT_MODELS_ODENET_RATE_H_
#define PLAIT_MODELS_ODENET_RATE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/odenet/options.h"

namespace plait::odenet {

// Shape of the weight of a linear layer, or of a convolution of width 3.
std::vector<std::int64_t> WeightShape(Form form, std::int64_t in, std::int64_t out);

// The convolutions keep rows and columns.
at::Tensor Apply(Form form, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
at::Tensor Activate(Activation activation, const at::Tensor& x);

// weight and bias of F's linear layer, or of both convolutions.
using Theta = std::vector<at::Tensor>;

// u + step F(u; theta), on kernels of our own where those are quicker (own_step.h).
at::Tensor TakeStep(const OdeNetOptions& options, const Theta& theta, const at::Tensor& u, double step);

// F at several points in time at once: u (n, batch, ...), one theta for each of n (models/stacked).
at::Tensor EvaluateRates(const OdeNetOptions& options, const std::vector<Theta>& thetas, const at::Tensor& u);

// theta of layer `layer`: that of point `first`, or (1 - share) of it and `share` of the next one.
struct TimePoint {
  std::int64_t first = 0;
  double share = 0;
};
TimePoint PointOf(const OdeNetOptions& options, std::int64_t layer);

}  // namespace plait::odenet

#endif  // PLAIT_MODELS_ODENET_RATE_H_
