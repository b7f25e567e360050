// Layer norm and GELU, with kernels of our own where these are quicker than LibTorch's.
//
//   at::Tensor y = rowwise::LayerNorm(x, weight, bias, 1e-5);
//   at::Tensor z = rowwise::Gelu(y, rowwise::GeluKind::kExact);
//
//   x              (rows, width) for LayerNorm, any shape for Gelu
//   weight, bias   (width), of the type of x; the bias may be undefined
//   returned       as x; gradients by autograd, once differentiable
//
// Own kernels are used for float32 and bfloat16 on processors that have any (kernels/row_functions.h), on as
// many threads as at::set_num_threads says: a layer norm in bfloat16 takes a half of LibTorch's time, a GELU
// is spared oneDNN's set-up. Else these are at::layer_norm and at::gelu. Local.
#ifndef PLAIT_MODELS_ROWWISE_ROWWISE_H_
#define PLAIT_MODELS_ROWWISE_ROWWISE_H_

#include <ATen/core/Tensor.h>

namespace plait::rowwise {

at::Tensor LayerNorm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon);

// Hendrycks and Gimpel, arXiv:1606.08415: exact, or by their formula with tanh.
enum class GeluKind { kExact, kTanh };

at::Tensor Gelu(const at::Tensor& x, GeluKind kind);

}  // namespace plait::rowwise

#endif  // PLAIT_MODELS_ROWWISE_ROWWISE_H_
