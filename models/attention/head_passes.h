// Attention of all heads of a batch by the kernels of kernels/head.h, on as many threads as at::set_num_threads says.
// Private to models/attention.
//
// Tensors are of one type for which HasOwnKernels, with rows whose numbers lie together, any distance apart. On the
// meta device nothing is computed. Not recorded by autograd.
#ifndef PLAIT_MODELS_ATTENTION_HEAD_PASSES_H_
#define PLAIT_MODELS_ATTENTION_HEAD_PASSES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/attention/short_attention.h"

namespace plait::attention {

bool HasOwnKernels(const at::Tensor& rows);

// (batch seq, heads width), keys and values (batch seq, key heads width): or their gradients.
struct HeadRows {
  at::Tensor query, key, value;
};

// probabilities (batch heads, seq, seq) and out (batch seq, heads width) are written.
void ForwardHeads(const HeadRows& rows, const AttentionSizes& sizes, const at::Tensor& probabilities,
                  const at::Tensor& out);
// `of` is written.
void BackwardHeads(const HeadRows& rows, const AttentionSizes& sizes, const at::Tensor& probabilities,
                   const at::Tensor& of_out, const HeadRows& of);
// Writes `rows`, (batch seq, heads width), with rotary positions to `out`, which may be `rows`; `back`: takes them away.
void RotateHeads(const at::Tensor& rows, std::int64_t batch, std::int64_t heads, const RotaryTables& tables,
                 bool back, const at::Tensor& out);

}  // namespace plait::attention

#endif  // PLAIT_MODELS_ATTENTION_HEAD_PASSES_H_
