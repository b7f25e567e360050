// All that HDF5 does with the structures of a file.
#ifndef PLAIT_DATA_HDF5_WALK_H_
#define PLAIT_DATA_HDF5_WALK_H_

#include <string>

namespace plait::data {

// Lists every group and attribute and reads every array that lies in chunks, of the others the first and the last
// element. Links to other files are not followed. Over a damaged file HDF5 1.10 may end the process, or never come to an
// end: trial.h does it in a process of its own.
void WalkFile(const std::string& path);

}  // namespace plait::data

#endif  // PLAIT_DATA_HDF5_WALK_H_
