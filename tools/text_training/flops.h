// What share of a processor's arithmetic a training step is.
//
//   const double flops = gpt::FlopsPerToken(options, block_size);
//   const double mfu = MfuPercent(flops, tokens_of_this_rank, dt_seconds, peak);  // 312e12: an A100,
//   bfloat16
//
// Operations that activation checkpointing does twice count once. Local.
#ifndef PLAIT_TOOLS_TEXT_TRAINING_FLOPS_H_
#define PLAIT_TOOLS_TEXT_TRAINING_FLOPS_H_

#include <c10/core/TensorOptions.h>

#include <functional>

namespace plait::text_training {

// NaN without a peak (0). `tokens` and `dt_seconds` are of one rank, `peak_flops` per second.
double MfuPercent(double flops_per_token, double tokens, double dt_seconds, double peak_flops);

// Operations per second of the best of some products of square matrices in this type on this device, on one
// thread of LibTorch's pool as it is set: two products at least, and as many as begin within half a second of
// `clock`; empty: the steady clock, when the device is idle.
double MeasuredPeakFlops(const c10::TensorOptions& options, const std::function<double()>& clock = {});

}  // namespace plait::text_training

#endif  // PLAIT_TOOLS_TEXT_TRAINING_FLOPS_H_
