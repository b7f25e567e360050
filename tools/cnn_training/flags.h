// The command line of train_cnn.
//
//   base::ParseFlagsOrExit(argc, argv, Usage(), rank);
//   const Config config = ConfigFromFlags();
#ifndef PLAIT_TOOLS_CNN_TRAINING_FLAGS_H_
#define PLAIT_TOOLS_CNN_TRAINING_FLAGS_H_

#include <string>

#include "base/flags.h"
#include "tools/cnn_training/config.h"

namespace plait::cnn_training {

base::ToolUsage Usage();

// Paths are absolute, as base::FromUser makes them.
Config ConfigFromFlags();

// "Namespace(batch_size=64, ...)": the flags as they were given.
std::string FlagSettings();

}  // namespace plait::cnn_training

#endif  // PLAIT_TOOLS_CNN_TRAINING_FLAGS_H_
