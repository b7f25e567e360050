// Euler steps of convolutional networks on kernels of our own. Private to models/odenet.
#ifndef PLAIT_MODELS_ODENET_OWN_STEP_H_
#define PLAIT_MODELS_ODENET_OWN_STEP_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace plait::odenet {

// To which LibTorch's convolutions were measured to be slower.
constexpr std::int64_t kMostChannels = 16;

// Whether OwnStep takes these: float32 on a processor, u (batch, channels, rows, columns) with at most kMostChannels
// channels, `theta` weight and bias of two convolutions of width 3; outside of autocast.
bool HasOwnStep(const at::Tensor& u, at::TensorList theta);

// u + step relu(conv2(relu(conv1(u)))), recorded by autograd. The adjoint computes what it is asked for: the gradient of
// u, those of theta, or both; it cannot be differentiated again (c10::Error). The same bits on any number of threads, and
// for an image in any batch.
at::Tensor OwnStep(const at::Tensor& u, at::TensorList theta, double step);

}  // namespace plait::odenet

#endif  // PLAIT_MODELS_ODENET_OWN_STEP_H_
