// Where the files of a run go.
#ifndef PLAIT_TOOLS_DIST_TEST_OUTPUT_FOLDER_H_
#define PLAIT_TOOLS_DIST_TEST_OUTPUT_FOLDER_H_

#include <string>

#include "absl/status/statusor.h"
#include "comm/communicator.h"
#include "tools/dist_test/config.h"

namespace plait::dist_test {

struct OutputFolder {
  std::string path;
  std::string stamp;  // "2024-07-17-073537", local time at rank 0
};

// Collective. --outputs, else outputs/test_dist/STAMP where the user is; made by rank 0. An error, the same
// on all ranks, where it takes no files.
absl::StatusOr<OutputFolder> OpenOutputFolder(const Config& config, const comm::Communicator& world);

}  // namespace plait::dist_test

#endif  // PLAIT_TOOLS_DIST_TEST_OUTPUT_FOLDER_H_
