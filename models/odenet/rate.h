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

// The linear map. Convolutions are zero-padded and keep rows and columns.
at::Tensor Apply(Form form, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
at::Tensor Activate(Activation activation, const at::Tensor& x);

// weight and bias of F's linear layer, or of both convolutions.
using Theta = std::vector<at::Tensor>;

// u + step F(u; theta), with own kernels where they are faster (own_step.h).
at::Tensor TakeStep(const OdeNetOptions& options, const Theta& theta, const at::Tensor& u, double step);

// F at n points in time in one batched call (models/stacked): u (n, batch, ...), one theta per point.
at::Tensor EvaluateRates(const OdeNetOptions& options, const std::vector<Theta>& thetas, const at::Tensor& u);

// theta of layer `layer` is (1 - share) times that of point `first` plus share times that of the next point.
struct TimePoint {
  std::int64_t first = 0;
  double share = 0;
};
TimePoint PointOf(const OdeNetOptions& options, std::int64_t layer);

}  // namespace plait::odenet

#endif  // PLAIT_MODELS_ODENET_RATE_H_
