// The command line of train_gru.
//
//   base::ParseFlagsOrExit(argc, argv, Usage(), rank);
//   absl::StatusOr<Config> config = ConfigFromFlags();
#ifndef PLAIT_TOOLS_GRU_TRAINING_FLAGS_H_
#define PLAIT_TOOLS_GRU_TRAINING_FLAGS_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/flags.h"
#include "tools/gru_training/config.h"

namespace plait::gru_training {

base::ToolUsage Usage();

// Paths are absolute, as base::FromUser makes them. InvalidArgument for a list of factors that is none.
absl::StatusOr<Config> ConfigFromFlags();

// "Namespace(seed=..., ...)": the flags as they were given.
std::string FlagSettings();

}  // namespace plait::gru_training

#endif  // PLAIT_TOOLS_GRU_TRAINING_FLAGS_H_
