// A whole run: data, plan, network, training, results.
#ifndef PLAIT_TOOLS_CNN_TRAINING_RUN_H_
#define PLAIT_TOOLS_CNN_TRAINING_RUN_H_

#include <string>

#include "absl/status/status.h"
#include "comm/session.h"
#include "tools/cnn_training/config.h"

namespace plait::cnn_training {

// Collective. `settings`: the command line, for the files. Sets `stopped` where a signal or the job's end
// came before the run's. Errors are the same on all ranks.
absl::Status Run(const Config& config, const std::string& settings, comm::Session& session, bool* stopped);

}  // namespace plait::cnn_training

#endif  // PLAIT_TOOLS_CNN_TRAINING_RUN_H_
