// A look at a whole HDF5 file in a process of its own: HDF5 1.10 can crash, or never end, over a damaged file.
#ifndef PLAIT_DATA_HDF5_TRIAL_H_
#define PLAIT_DATA_HDF5_TRIAL_H_

#include <hdf5.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace plait::data {

// Lists every group and attribute and reads every array that lies in chunks, of the others the first and the last
// element: all that HDF5 does with its own structures. The child process has a limit of memory and of processor
// time, each in proportion to the file, prints nothing and leaves nothing. OK where it ends by itself, also with errors
// of HDF5's, which the caller then meets; DATA_LOSS where it crashes or reaches a limit. Links to other files are not
// followed. OK, too, where the system has no room for the process. Local.
absl::Status TryInChild(const std::string& path);

// The most bytes that an array of an open file may be said to have: deflate packs at most 1032 : 1, and chunks that were
// never written take no room.
std::int64_t MostBytes(hid_t file, hid_t array);

}  // namespace plait::data

#endif  // PLAIT_DATA_HDF5_TRIAL_H_
