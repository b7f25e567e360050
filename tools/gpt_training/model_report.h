// What a run prints about its model and optimizer, in nanoGPT's format.
#ifndef PLAIT_TOOLS_GPT_TRAINING_MODEL_REPORT_H_
#define PLAIT_TOOLS_GPT_TRAINING_MODEL_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "models/block_model.h"
#include "parallel/optim/sharded_optimizer.h"

namespace plait::gpt_training {

//   number of parameters: 85.00M
//   Model size: num_params=85003776
//   num decayed parameter tensors: 50, with 85,771,008 parameters
//   num non-decayed parameter tensors: 25, with 19,200 parameters
//
// The first two print `quoted`, the number without position embeddings; the others count the model's parameters,
// buffers excluded. Local.
std::vector<std::string> ParameterLines(const models::BlockModel& model, std::int64_t quoted);

// "AdamW (\nParameter Group 0\n    betas: ...": the groups with and without weight decay; Muon's settings first, where
// options.kind is kMuon.
std::string OptimizerText(const parallel::ShardedOptimizerOptions& options);

}  // namespace plait::gpt_training

#endif  // PLAIT_TOOLS_GPT_TRAINING_MODEL_REPORT_H_
