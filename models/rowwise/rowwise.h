// Norms, GELU and gated SiLU, with own kernels where they are faster than LibTorch's.
//
//   at::Tensor y = rowwise::LayerNorm(x, weight, bias, 1e-5);
//   at::Tensor z = rowwise::Gelu(y, rowwise::GeluKind::kExact);
//   at::Tensor g = rowwise::SiluTimes(gate, x);                   // silu(gate) * x
//
//   x              (rows, width) for the norms, any shape for the others; the gate has x's shape and dtype
//   weight, bias   (width), of x's dtype; the bias may be undefined
//   returned       as x; gradients by autograd, once differentiable
//
// Own kernels are used for float32 and bfloat16 on AMD CPUs with AVX-512 (kernels/row_functions.h), on
// at::get_num_threads() threads: a layer norm in bfloat16 takes half of LibTorch's time, GELU avoids oneDNN's set-up,
// RMS norm and gated SiLU are one pass instead of several. Else these are at::layer_norm, at::rms_norm, at::gelu and
// at::silu. Local. The norms and SiluTimes abort if shapes do not fit.
#ifndef PLAIT_MODELS_ROWWISE_ROWWISE_H_
#define PLAIT_MODELS_ROWWISE_ROWWISE_H_

#include <ATen/core/Tensor.h>

namespace plait::rowwise {

at::Tensor LayerNorm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon);

// x / sqrt(mean square + epsilon) * weight, row by row: Zhang and Sennrich, arXiv:1910.07467.
at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon);

// Hendrycks and Gimpel, arXiv:1606.08415: exact, or with their tanh approximation.
enum class GeluKind { kExact, kTanh };

at::Tensor Gelu(const at::Tensor& x, GeluKind kind);

// silu(gate) * x, for gated layers (Shazeer, arXiv:2002.05202).
at::Tensor SiluTimes(const at::Tensor& gate, const at::Tensor& x);

}  // namespace plait::rowwise

#endif  // PLAIT_MODELS_ROWWISE_ROWWISE_H_
