// Walks an HDF5 file in a child process: HDF5 1.10 can crash, or fail to terminate, on a damaged file.
#ifndef PLAIT_DATA_HDF5_TRIAL_H_
#define PLAIT_DATA_HDF5_TRIAL_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace plait::data {

// Runs WalkFile (walk.h) in a forked child with limits on memory (1 GiB + 4 x file size) and CPU time (10 s + 1 s
// per 10 MiB). OK if the child exits normally, even after errors of HDF5, which the caller's own calls will return;
// DATA_LOSS if it crashes or reaches a limit. OK also if fork() fails. Blocks until the child exits. Local.
absl::Status TryInChild(const std::string& path);

// The same with `walk` instead of WalkFile. For tests; not in builds for fuzzing.
absl::Status TryInChild(const std::string& path, absl::FunctionRef<void()> walk);

}  // namespace plait::data

#endif  // PLAIT_DATA_HDF5_TRIAL_H_
