// The command line of train_gpt.
//
//   PLAIT_RETURN_IF_ERROR(TakePreset(argc, argv));          // first: flags that are given then win
//   base::ParseFlagsOrExit(argc, argv, Usage(), rank);
//   absl::StatusOr<Config> config = ConfigFromFlags();
#ifndef PLAIT_TOOLS_GPT_TRAINING_FLAGS_H_
#define PLAIT_TOOLS_GPT_TRAINING_FLAGS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/flags.h"
#include "tools/gpt_training/config.h"

namespace plait::gpt_training {

// Sets the flags to what the last --preset of the command line says. InvalidArgument for a name that is none.
absl::Status TakePreset(int argc, char** argv);

base::ToolUsage Usage();

// Paths are absolute, as base::FromUser makes them. InvalidArgument, one line, for words and sizes that are
// none.
absl::StatusOr<Config> ConfigFromFlags();

// "Namespace(preset='gpt2', ...)": the flags as they are.
std::string FlagSettings();

}  // namespace plait::gpt_training

#endif  // PLAIT_TOOLS_GPT_TRAINING_FLAGS_H_
