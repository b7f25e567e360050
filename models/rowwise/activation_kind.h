// The activations that layers have.
#ifndef PLAIT_MODELS_ROWWISE_ACTIVATION_KIND_H_
#define PLAIT_MODELS_ROWWISE_ACTIVATION_KIND_H_

namespace plait::rowwise {

// kGelu: x times the normal distribution's function at x (Hendrycks and Gimpel, arXiv:1606.08415), exact (within
// 2e-7 of it); kGeluTanh: by their formula with tanh. kSilu: x sigmoid(x).
enum class Activation { kGelu, kGeluTanh, kRelu, kSilu };

}  // namespace plait::rowwise

#endif  // PLAIT_MODELS_ROWWISE_ACTIVATION_KIND_H_
