// Muon's direction of a matrix: its momentum with all singular values brought near 1.
//
//   weight.sub_(NewtonSchulz(momentum) * (lr * MuonScale(rows, columns)));
//
// Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024: five steps of an odd polynomial,
// x -> 3.4445 x - 4.7750 x^3 + 2.0315 x^5, on the singular values of the matrix over its Frobenius norm, by products alone.
// The scale is that of Liu et al., "Muon is scalable for LLM training", arXiv:2502.16982: the step then has the size of an
// AdamW step, so that both take the same learning rate and weight decay.
//
// Local.
#ifndef PLAIT_PARALLEL_OPTIM_MUON_H_
#define PLAIT_PARALLEL_OPTIM_MUON_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace plait::parallel {

// `matrix`: (rows, columns); in its type. Zero stays zero.
at::Tensor NewtonSchulz(const at::Tensor& matrix);

// 0.2 sqrt(max(rows, columns)).
double MuonScale(std::int64_t rows, std::int64_t columns);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_OPTIM_MUON_H_
