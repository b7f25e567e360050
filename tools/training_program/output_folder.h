// Where the files of a run go.
//
//   PLAIT_ASSIGN_OR_RETURN(const OutputFolder folder, OpenOutputFolder("train_gpt", config.outputs, world));
//   // outputs/train_gpt/2024-07-17-073537
#ifndef PLAIT_TOOLS_TRAINING_PROGRAM_OUTPUT_FOLDER_H_
#define PLAIT_TOOLS_TRAINING_PROGRAM_OUTPUT_FOLDER_H_

#include <string>

#include "absl/status/statusor.h"
#include "comm/communicator.h"

namespace plait::training_program {

struct OutputFolder {
  std::string path;
  std::string stamp;  // "2024-07-17-073537", local time at rank 0
};

// Collective. `outputs`, as --outputs has it; empty: outputs/PROGRAM/STAMP where the user is. Made by rank 0.
// An error, the same on all ranks, where it takes no files.
absl::StatusOr<OutputFolder> OpenOutputFolder(const std::string& program, const std::string& outputs,
                                              const comm::Communicator& world);

}  // namespace plait::training_program

#endif  // PLAIT_TOOLS_TRAINING_PROGRAM_OUTPUT_FOLDER_H_
