// Euler steps of convolutional networks with own kernels. Private to models/odenet.
#ifndef PLAIT_MODELS_ODENET_OWN_STEP_H_
#define PLAIT_MODELS_ODENET_OWN_STEP_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace plait::odenet {

// The most channels for which own kernels are used; they are faster than LibTorch's convolutions up to here at least.
constexpr std::int64_t kMostChannels = 16;

// Whether OwnStep can be called: float32 on the CPU, u (batch, channels, rows, columns) with at most kMostChannels
// channels and not empty, `theta` weight and bias of two convolutions of width 3; outside autocast.
bool HasOwnStep(const at::Tensor& u, at::TensorList theta);

// u + step relu(conv2(relu(conv1(u)))), recorded by autograd. Backward computes only the gradients that are needed: of
// u, of theta, or both; it cannot be differentiated again (c10::Error). Bitwise identical on any number of threads;
// an image's result is bitwise identical in any batch.
at::Tensor OwnStep(const at::Tensor& u, at::TensorList theta, double step);

}  // namespace plait::odenet

#endif  // PLAIT_MODELS_ODENET_OWN_STEP_H_
