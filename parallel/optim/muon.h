// Muon's update of a matrix: its momentum, approximately orthogonalized (all singular values near 1).
//
//   weight.sub_(NewtonSchulz(momentum) * (lr * MuonScale(rows, columns)));
//
// Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024: five iterations of the polynomial
// x -> 3.4445 x - 4.7750 x^3 + 2.0315 x^5 on the singular values of the matrix divided by its Frobenius norm, by matrix
// products only. The scale is that of Liu et al., "Muon is scalable for LLM training", arXiv:2502.16982: updates then
// have the magnitude of AdamW's, so that both can use the same learning rate and weight decay.
//
// Local.
#ifndef PLAIT_PARALLEL_OPTIM_MUON_H_
#define PLAIT_PARALLEL_OPTIM_MUON_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace plait::parallel {

// `matrix`: (rows, columns), or a stack of matrices (..., rows, columns), each updated by itself. Computes in its type.
// Returns zeros for a zero matrix.
at::Tensor NewtonSchulz(const at::Tensor& matrix);

// 0.2 sqrt(max(rows, columns)).
double MuonScale(std::int64_t rows, std::int64_t columns);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_OPTIM_MUON_H_
