// Draws the next token from logits, and texts from a GPT.
//
//   Sampler sampler({.temperature = 0.8, .top_k = 200, .seed = 1337});
//   gpt.SetTraining(false);
//   PLAIT_ASSIGN_OR_RETURN(const std::vector<std::int64_t> tokens, Generate(gpt, prompt, 500, sampler));
//
// The same seed, options and logits give the same tokens, whatever program ran before: random numbers are the
// sampler's own (base/seed.h). Top-p: Holtzman et al., 2020. Local.
#ifndef PLAIT_MODELS_GPT_SAMPLER_H_
#define PLAIT_MODELS_GPT_SAMPLER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/seed.h"
#include "models/gpt/gpt.h"

namespace plait::gpt {

struct SamplingOptions {
  double temperature = 1;  // logits are divided by it; 0: always the likeliest token
  std::int64_t top_k = 0;  // only the k likeliest tokens; 0: all
  // Only the likeliest tokens that together reach this probability, at least one; after top_k. 0 to 1.
  double top_p = 1;
  std::uint64_t seed = 0;
};

// InvalidArgument: names the option that is out of its bounds.
absl::Status Validate(const SamplingOptions& options);

class Sampler {
 public:
  // Options that Validate() refuses are a programming error.
  explicit Sampler(const SamplingOptions& options);

  // A token for logits (vocab_size) of any floating type; of equal logits the first counts as likelier.
  // OUT_OF_RANGE if no token can be drawn: a logit is NaN or +inf, or all are -inf; nothing is drawn then.
  absl::StatusOr<std::int64_t> Next(const at::Tensor& logits);

 private:
  SamplingOptions options_;
  base::RandomStream random_;
};

// `count` tokens that follow `prompt`, which has at least one. `on_token` sees each as it is drawn. The
// model's mode is the caller's matter: SetTraining(false). A context longer than block_size is cut in front,
// as nanoGPT does; from then on each token costs a whole pass, as every position moves. Errors of
// Sampler::Next, with the number of the token.
absl::StatusOr<std::vector<std::int64_t>> Generate(
    const Gpt& gpt, absl::Span<const std::int64_t> prompt, std::int64_t count, Sampler& sampler,
    const std::function<void(std::int64_t)>& on_token = nullptr);

}  // namespace plait::gpt

#endif  // PLAIT_MODELS_GPT_SAMPLER_H_
