// Makes HDF5 parse all structures of a file.
#ifndef PLAIT_DATA_HDF5_WALK_H_
#define PLAIT_DATA_HDF5_WALK_H_

#include <string>

namespace plait::data {

// Lists all groups (to a depth of 64) and attributes, reads chunked arrays completely and the first and last element of
// others. Soft and external links are not followed. On a damaged file HDF5 1.10 may crash the process or not terminate:
// trial.h runs this in a child process.
void WalkFile(const std::string& path);

}  // namespace plait::data

#endif  // PLAIT_DATA_HDF5_WALK_H_
