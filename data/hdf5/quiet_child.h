// What a child process does before it looks at a file that may end it.
#ifndef PLAIT_DATA_HDF5_QUIET_CHILD_H_
#define PLAIT_DATA_HDF5_QUIET_CHILD_H_

#include <cstdint>

namespace plait::data {

// Prints nothing from now on, ends by the signals that faults send, without a core file, and takes no more than so much
// memory beside what it has.
void BecomeQuietChild(std::int64_t memory_bytes);

}  // namespace plait::data

#endif  // PLAIT_DATA_HDF5_QUIET_CHILD_H_
