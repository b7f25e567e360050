// Attention of all heads of a batch with the kernels of kernels/head.h, on at::get_num_threads() threads.
// Private to models/attention.
//
// All tensors have one dtype for which HasOwnKernels() is true, and rows that are contiguous, with any stride between
// them. Nothing is computed on the meta device. Not recorded by autograd.
#ifndef PLAIT_MODELS_ATTENTION_HEAD_PASSES_H_
#define PLAIT_MODELS_ATTENTION_HEAD_PASSES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/attention/short_attention.h"

namespace plait::attention {

bool HasOwnKernels(const at::Tensor& rows);

// Queries (batch seq, heads width), keys and values (batch seq, key heads width), or their gradients.
struct HeadRows {
  at::Tensor query, key, value;
};

// Writes `probabilities` (batch heads, seq, seq) and `out` (batch seq, heads width).
void ForwardHeads(const HeadRows& rows, const AttentionSizes& sizes, const at::Tensor& probabilities,
                  const at::Tensor& out);
// Writes the gradients `of`; `of_out` is the gradient of `out`.
void BackwardHeads(const HeadRows& rows, const AttentionSizes& sizes, const at::Tensor& probabilities,
                   const at::Tensor& of_out, const HeadRows& of);
// Applies rotary positions to `rows` (batch seq, heads width) and writes the result to `out`, which may be `rows`;
// `back`: rotates by the negative angles.
void RotateHeads(const at::Tensor& rows, std::int64_t batch, std::int64_t heads, const RotaryTables& tables,
                 bool back, const at::Tensor& out);

}  // namespace plait::attention

#endif  // PLAIT_MODELS_ATTENTION_HEAD_PASSES_H_
