// The reference backend of experts.h: LibTorch's operators, one expert at a time, and its autograd. Private to
// experts.cc.
#ifndef PLAIT_PARALLEL_MOE_REFERENCE_EXPERTS_H_
#define PLAIT_PARALLEL_MOE_REFERENCE_EXPERTS_H_

#include "parallel/moe/experts.h"

namespace plait::moe {

at::Tensor ReferenceForward(Activation activation, const ExpertWeights& weights, const at::Tensor& rows,
                            absl::Span<const std::int64_t> offsets);

ExpertGradients ReferenceBackward(Activation activation, const ExpertWeights& weights, const at::Tensor& rows,
                                  absl::Span<const std::int64_t> offsets, const at::Tensor& gradient,
                                  const WantedGradients& wanted);

}  // namespace plait::moe

#endif  // PLAIT_PARALLEL_MOE_REFERENCE_EXPERTS_H_
