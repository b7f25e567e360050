// Norms, GELU and gated SiLU, with kernels of our own where these are quicker than LibTorch's.
//
//   at::Tensor y = rowwise::LayerNorm(x, weight, bias, 1e-5);
//   at::Tensor z = rowwise::Gelu(y, rowwise::GeluKind::kExact);
//   at::Tensor g = rowwise::SiluTimes(gate, x);                   // silu(gate) x
//
//   x              (rows, width) for the norms, any shape for the others, of one type with the gate
//   weight, bias   (width), of the type of x; the bias may be undefined
//   returned       as x; gradients by autograd, once differentiable
//
// Own kernels are used for float32 and bfloat16 on processors that have any (kernels/row_functions.h), on as
// many threads as at::set_num_threads says: a layer norm in bfloat16 takes a half of LibTorch's time, a GELU
// is spared oneDNN's set-up, an RMS norm or a gated SiLU is one pass where LibTorch has several. Else these are at::layer_norm,
// at::rms_norm, at::gelu and at::silu. Local.
#ifndef PLAIT_MODELS_ROWWISE_ROWWISE_H_
#define PLAIT_MODELS_ROWWISE_ROWWISE_H_

#include <ATen/core/Tensor.h>

namespace plait::rowwise {

at::Tensor LayerNorm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon);

// x / sqrt(mean square + epsilon) * weight, row by row: Zhang and Sennrich, arXiv:1910.07467.
at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double epsilon);

// Hendrycks and Gimpel, arXiv:1606.08415: exact, or by their formula with tanh.
enum class GeluKind { kExact, kTanh };

at::Tensor Gelu(const at::Tensor& x, GeluKind kind);

// Of gated layers (Shazeer, arXiv:2002.05202). Other shapes than the gate's abort.
at::Tensor SiluTimes(const at::Tensor& gate, const at::Tensor& x);

}  // namespace plait::rowwise

#endif  // PLAIT_MODELS_ROWWISE_ROWWISE_H_
