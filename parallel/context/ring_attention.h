// Private to attention.h: several ranks, options.length > 0, shapes checked.
#ifndef PLAIT_PARALLEL_CONTEXT_RING_ATTENTION_H_
#define PLAIT_PARALLEL_CONTEXT_RING_ATTENTION_H_

#include <ATen/core/Tensor.h>

#include "parallel/context/attention.h"

namespace plait::context_parallel {

at::Tensor RingAttention(const ContextAxis& axis, const at::Tensor& query, const at::Tensor& key,
                         const at::Tensor& value, const AttentionOptions& options);

}  // namespace plait::context_parallel

#endif  // PLAIT_PARALLEL_CONTEXT_RING_ATTENTION_H_
