// A run of train_gpt on the ranks of a session.
#ifndef PLAIT_TOOLS_GPT_TRAINING_RUN_H_
#define PLAIT_TOOLS_GPT_TRAINING_RUN_H_

#include <string>

#include "absl/status/status.h"
#include "comm/session.h"
#include "tools/gpt_training/config.h"

namespace plait::gpt_training {

// Collective. Says where it runs and what it trains, plans its memory, trains, writes its files. `settings`:
// the command line. `stopped`: SIGTERM or the job's end came first, and a checkpoint was kept. Errors are the
// same on all ranks.
absl::Status Run(const Config& config, const std::string& settings, comm::Session& session, bool* stopped);

}  // namespace plait::gpt_training

#endif  // PLAIT_TOOLS_GPT_TRAINING_RUN_H_
