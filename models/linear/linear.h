// Linear layers on rows, with the products of kernels/ where these are quicker than LibTorch's.
//
//   at::Tensor y = linear::Linear(x, weight, bias);            // x weight^T + bias
//   at::Tensor z = linear::AddLinear(x, y, projection);        // x + y projection^T
//   at::Tensor s = linear::Linear(x, wte);                     // logits of a tied head
//
//   x          (rows, in); other strides than one along `in` or along the rows are copied
//   weight     (out, in), of the type of x
//   bias       (out), or undefined
//   residual   (rows, out)
//   returned   (rows, out); gradients by autograd, once differentiable
//
// Own products are used for float32 and bfloat16 on processors that have any (kernels/product.h), from
// kFewestRows rows on; else this is at::linear. A row has the same bits in any batch and on any number of
// threads (at::set_num_threads) while they are used. Sums of a bfloat16 product, its bias and residual are
// made in float32 and rounded once. Local. docs/decisions/011-own-products-for-linear-layers.md has the
// figures.
#ifndef PLAIT_MODELS_LINEAR_LINEAR_H_
#define PLAIT_MODELS_LINEAR_LINEAR_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace plait::linear {

// Packing a weight costs as much as multiplying it with a few rows.
constexpr std::int64_t kFewestRows = 32;

// x, weight of other shapes abort.
at::Tensor Linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

// Linear(x, weight, bias) + residual, without the sum in between.
at::Tensor AddLinear(const at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight,
                     const at::Tensor& bias = {});

// left right + addend (undefined: nothing), (rows, inner) and (inner, columns), by the same choice of kernels;
// for the backward of other layers. Not recorded by autograd.
at::Tensor Product(const at::Tensor& left, const at::Tensor& right, const at::Tensor& addend = {});

}  // namespace plait::linear

#endif  // PLAIT_MODELS_LINEAR_LINEAR_H_
