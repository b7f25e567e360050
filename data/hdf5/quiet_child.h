// Sets up a child process for opening a file that may crash it.
#ifndef PLAIT_DATA_HDF5_QUIET_CHILD_H_
#define PLAIT_DATA_HDF5_QUIET_CHILD_H_

#include <cstdint>

namespace plait::data {

// Redirects stdout and stderr to /dev/null, restores the default action of fault signals, disables core files, and
// limits the address space to its current size plus `memory_bytes`.
void BecomeQuietChild(std::int64_t memory_bytes);

}  // namespace plait::data

#endif  // PLAIT_DATA_HDF5_QUIET_CHILD_H_
