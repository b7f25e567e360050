// Activation functions of layers.
#ifndef PLAIT_MODELS_ROWWISE_ACTIVATION_KIND_H_
#define PLAIT_MODELS_ROWWISE_ACTIVATION_KIND_H_

namespace plait::rowwise {

// kGelu: x Phi(x), with the normal CDF Phi accurate to 2e-7 (Hendrycks and Gimpel, arXiv:1606.08415); kGeluTanh: their
// tanh approximation. kSilu: x sigmoid(x).
enum class Activation { kGelu, kGeluTanh, kRelu, kSilu };

}  // namespace plait::rowwise

#endif  // PLAIT_MODELS_ROWWISE_ACTIVATION_KIND_H_
