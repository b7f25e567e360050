// A look at a whole HDF5 file in a process of its own: HDF5 1.10 can crash, or never end, over a damaged file.
#ifndef PLAIT_DATA_HDF5_TRIAL_H_
#define PLAIT_DATA_HDF5_TRIAL_H_

#include <string>

#include "absl/status/status.h"

namespace plait::data {

// WalkFile (walk.h) in a child process that has a limit of memory and of processor time, each in proportion to the file,
// prints nothing and leaves nothing. OK where it ends by itself, also with errors of HDF5's, which the caller then meets;
// DATA_LOSS where it crashes or reaches a limit. OK, too, where the system has no room for the process. Local.
absl::Status TryInChild(const std::string& path);

}  // namespace plait::data

#endif  // PLAIT_DATA_HDF5_TRIAL_H_
