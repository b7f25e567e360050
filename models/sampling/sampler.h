// Samples tokens from logits, and generates text from a language model with a key-value cache.
//
//   Sampler sampler({.temperature = 0.8, .top_k = 200, .seed = 1337});
//   model.SetTraining(false);
//   PLAIT_ASSIGN_OR_RETURN(std::vector<std::int64_t> tokens,
//                          Generate({model, options.block_size}, prompt, 500, sampler));
//
// The same seed, options and logits give the same tokens: the sampler has its own random stream (base/seed.h), not
// LibTorch's generator. Top-p: Holtzman et al., 2020. Local, unless the model is not.
#ifndef PLAIT_MODELS_SAMPLING_SAMPLER_H_
#define PLAIT_MODELS_SAMPLING_SAMPLER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/seed.h"
#include "models/block_model.h"

namespace plait::sampling {

struct SamplingOptions {
  double temperature = 1;  // logits are divided by it; 0: always the most likely token
  std::int64_t top_k = 0;  // sample from the k most likely tokens; 0: all
  // Sample from the smallest set of most likely tokens whose total probability reaches top_p, at least one; applied
  // after top_k. In [0, 1].
  double top_p = 1;
  std::uint64_t seed = 0;
};

// InvalidArgument if an option is out of range; the message names it.
absl::Status Validate(const SamplingOptions& options);

class Sampler {
 public:
  // Aborts if Validate(options) fails.
  explicit Sampler(const SamplingOptions& options);

  // Samples a token from logits (vocab_size) of any floating dtype; among equal logits the first counts as most likely.
  // OutOfRange if a logit is NaN or +inf, or all are -inf (-inf means probability 0).
  absl::StatusOr<std::int64_t> Next(const at::Tensor& logits);

 private:
  SamplingOptions options_;
  base::RandomStream random_;
};

// A model whose inputs are tokens (batch, seq) and whose blocks use the cache of their context. Not owned.
struct LanguageModel {
  models::BlockModel& model;
  std::int64_t positions;  // maximum context length
};

// Returns `count` tokens that follow `prompt`, which has at least one; the prompt is not included. `on_token` is called
// for each token as it is sampled; blocks run through `run`. Call SetTraining(false) before. A context longer than
// `positions` is truncated at the front, as in nanoGPT; from then on each token costs a whole forward pass, because
// every position changes. Not recorded by autograd. Errors of Sampler::Next, prefixed by the number of the token.
absl::StatusOr<std::vector<std::int64_t>> Generate(const LanguageModel& language,
                                                   absl::Span<const std::int64_t> prompt, std::int64_t count,
                                                   Sampler& sampler,
                                                   const std::function<void(std::int64_t)>& on_token = {},
                                                   const models::BlockRunner& run = {});

// A sequence of a batch, with its own sampler. It ends when `on_token` returns false or `count` tokens are sampled.
struct Continuation {
  std::vector<std::int64_t> tokens;  // the prompt, at least one token; sampled tokens are appended
  Sampler sampler;
  std::function<bool(std::int64_t token)> on_token = {};  // called for each sampled token; may be empty
};

// Generates a batch: prompts are processed one by one, then one token of every unfinished sequence per forward pass,
// whatever their lengths. Sequences longer than `positions` continue in passes of their own, as above. Tokens equal
// those of Generate() for each sequence alone, except where rounding (another order of summation) decides between tokens of
// nearly equal probability. Errors as above, prefixed by the number of the sequence: "sample 2: token 7: ...".
absl::Status GenerateBatch(const LanguageModel& language, std::int64_t count, absl::Span<Continuation> batch,
                           const models::BlockRunner& run = {});

// Generate() without a cache, for models that are distributed over ranks: `logits` is called with at most `positions`
// tokens and returns the logits of the last one, the same on all ranks.
using LogitsOfLast = std::function<at::Tensor(absl::Span<const std::int64_t> tokens)>;
absl::StatusOr<std::vector<std::int64_t>> Generate(const LogitsOfLast& logits, std::int64_t positions,
                                                   absl::Span<const std::int64_t> prompt, std::int64_t count,
                                                   Sampler& sampler,
                                                   const std::function<void(std::int64_t)>& on_token = {});

}  // namespace plait::sampling

#endif  // PLAIT_MODELS_SAMPLING_SAMPLER_H_
