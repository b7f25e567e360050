// What a run says about its model and optimizer, in the words of nanoGPT.
#ifndef PLAIT_TOOLS_GPT_TRAINING_MODEL_REPORT_H_
#define PLAIT_TOOLS_GPT_TRAINING_MODEL_REPORT_H_

#include <string>
#include <vector>

#include "models/gpt/gpt.h"
#include "parallel/optim/sharded_optimizer.h"

namespace plait::gpt_training {

//   number of parameters: 85.00M
//   Model size: num_params=85003776
//   num decayed parameter tensors: 50, with 85,771,008 parameters
//   num non-decayed parameter tensors: 25, with 19,200 parameters
//
// The first two without positions, as parameters are quoted; the others with.
std::vector<std::string> ParameterLines(const gpt::Gpt& model);

// "AdamW (\nParameter Group 0\n    betas: ...": the groups with and without decay.
std::string OptimizerText(const parallel::ShardedOptimizerOptions& options);

// Bytes of activations that one sample keeps from the forward to the backward pass, an upper estimate: per
// block its two norms, queries, keys, values, attention, both sums and the two wide layers, 16 T C numbers,
// or only its input where it is computed again; then the logits and their gradient. Dropout adds masks and,
// as attention's own is not fused, its T x T weights. `element_bytes`: of an activation.
std::int64_t ActivationBytesPerSample(const gpt::GptOptions& options, std::int64_t element_bytes,
                                      std::int64_t checkpointed_blocks);
// Of these, what the embedding's and the head's parts of the pass keep.
std::int64_t EndBytesPerSample(const gpt::GptOptions& options, std::int64_t element_bytes);

}  // namespace plait::gpt_training

#endif  // PLAIT_TOOLS_GPT_TRAINING_MODEL_REPORT_H_
