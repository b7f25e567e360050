// Samples tokens from logits, and texts from a language model with a cache.
//
//   Sampler sampler({.temperature = 0.8, .top_k = 200, .seed = 1337});
//   model.SetTraining(false);
//   PLAIT_ASSIGN_OR_RETURN(std::vector<std::int64_t> tokens,
//                          Generate({model, options.block_size}, prompt, 500, sampler));
//
// The same seed, options and logits give the same tokens, whatever program ran before: random numbers are the
// sampler's own (base/seed.h). Top-p: Holtzman et al., 2020. Local.
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
  // Sample from the most likely tokens that together reach this probability, at least one; applied after
  // top_k. 0 to 1.
  double top_p = 1;
  std::uint64_t seed = 0;
};

// InvalidArgument: names the option that is out of its bounds.
absl::Status Validate(const SamplingOptions& options);

class Sampler {
 public:
  // Options that Validate() refuses are a programming error.
  explicit Sampler(const SamplingOptions& options);

  // A token for logits (vocab_size) of any floating type; of equal logits the first counts as more likely.
  // OutOfRange: logits that are NaN or infinite (-inf, a probability of 0, is allowed for some of them).
  absl::StatusOr<std::int64_t> Next(const at::Tensor& logits);

 private:
  SamplingOptions options_;
  base::RandomStream random_;
};

// A model whose inputs are tokens (batch, seq) and whose blocks use the cache of their context.
struct LanguageModel {
  models::BlockModel& model;
  std::int64_t positions;  // tokens it can see at once
};

// `count` tokens that follow `prompt`, which has at least one. `on_token` is called for each as it is drawn;
// blocks run through `run`. Call SetTraining(false) before. A context longer than `positions` is truncated in
// front, as in nanoGPT; from then on each token costs a whole pass, because every position moves. Not
// recorded by autograd. Errors of Sampler::Next, with the number of the token.
absl::StatusOr<std::vector<std::int64_t>> Generate(const LanguageModel& language,
                                                   absl::Span<const std::int64_t> prompt, std::int64_t count,
                                                   Sampler& sampler,
                                                   const std::function<void(std::int64_t)>& on_token = {},
                                                   const models::BlockRunner& run = {});

// Of a batch: a text that goes on with its own sampler, until `on_token` says false or `count` tokens are drawn.
struct Continuation {
  std::vector<std::int64_t> tokens;  // the prompt, at least one; what is drawn is added
  Sampler sampler;
  std::function<bool(std::int64_t token)> on_token = {};  // called for each as it is drawn
};

// All at once: prompts one after the other, then a token of each in a pass of all, whatever their lengths. Sequences
// longer than `positions` go on by passes of their own, as above. The tokens are those of Generate() for each alone,
// unless sums in another order turn a choice between tokens that are as likely. Errors as above, with the number of the
// text in front: "sample 2: token 7: ...".
absl::Status GenerateBatch(const LanguageModel& language, std::int64_t count, absl::Span<Continuation> batch,
                           const models::BlockRunner& run = {});

// The same without a cache, for models that no process can run alone: `logits` gets tokens, at most `positions`, and
// gives those of the last one, the same on all ranks.
using LogitsOfLast = std::function<at::Tensor(absl::Span<const std::int64_t> tokens)>;
absl::StatusOr<std::vector<std::int64_t>> Generate(const LogitsOfLast& logits, std::int64_t positions,
                                                   absl::Span<const std::int64_t> prompt, std::int64_t count,
                                                   Sampler& sampler,
                                                   const std::function<void(std::int64_t)>& on_token = {});

}  // namespace plait::sampling

#endif  // PLAIT_MODELS_SAMPLING_SAMPLER_H_
