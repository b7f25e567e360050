// Arithmetic of a training step, and what of it a processor could do at best.
//
//   const double flops = FlopsPerToken({.parameters = 85003776, .n_layer = 12, .n_embd = 768, .block_size =
//   1024}); const double mfu = MfuPercent(flops, tokens_of_this_rank, dt_seconds, peak);     // 312e12: an
//   A100 in bfloat16
//
// 6 N + 12 L C T floating-point operations per token, forward and backward (Chowdhery et al., "PaLM",
// arXiv:2204.02311, appendix B): N parameters without the position embedding, L layers of width C, T tokens
// at once. Operations that activation checkpointing does twice count once. Local.
#ifndef PLAIT_TOOLS_GPT_TRAINING_FLOPS_H_
#define PLAIT_TOOLS_GPT_TRAINING_FLOPS_H_

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace plait::gpt_training {

struct ModelSize {
  std::int64_t parameters = 0;  // without the position embedding
  std::int64_t n_layer = 0;
  std::int64_t n_embd = 0;
  std::int64_t block_size = 0;
};

double FlopsPerToken(const ModelSize& model);

// NaN without a peak (0). `tokens` and `dt_seconds` are of one rank, `peak_flops` per second.
double MfuPercent(double flops_per_token, double tokens, double dt_seconds, double peak_flops);

// Operations per second of the best of some products of square matrices in this type, on one thread of
// LibTorch's pool as it is set. Takes about half a second.
double MeasuredPeakFlops(c10::ScalarType type);

}  // namespace plait::gpt_training

#endif  // PLAIT_TOOLS_GPT_TRAINING_FLOPS_H_
