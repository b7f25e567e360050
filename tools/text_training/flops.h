// Model FLOPs utilization (mfu) of a training step.
//
//   const double flops = gpt::FlopsPerToken(options, block_size);
//   const double mfu = MfuPercent(flops, tokens_of_this_rank, dt_seconds, peak);  // 312e12: an A100 in bfloat16
//
// Recomputation by activation checkpointing is not counted. Local.
#ifndef PLAIT_TOOLS_TEXT_TRAINING_FLOPS_H_
#define PLAIT_TOOLS_TEXT_TRAINING_FLOPS_H_

#include <c10/core/TensorOptions.h>

#include <functional>

namespace plait::text_training {

// In per cent. `tokens` and `dt_seconds` are of one rank; `peak_flops` is its FLOP/s. NaN if that is 0.
double MfuPercent(double flops_per_token, double tokens, double dt_seconds, double peak_flops);

// FLOP/s of the fastest of several products of square matrices (1024 on CPU, else 8192) in this type on this device,
// with LibTorch's current number of threads: at least two products, and as many as begin within half a second. `clock`
// returns seconds; empty: the steady clock, after synchronizing with the device.
double MeasuredPeakFlops(const c10::TensorOptions& options, const std::function<double()>& clock = {});

}  // namespace plait::text_training

#endif  // PLAIT_TOOLS_TEXT_TRAINING_FLOPS_H_
