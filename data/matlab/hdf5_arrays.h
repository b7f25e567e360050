// Version 7.3 of MATLAB's files: HDF5.
#ifndef PLAIT_DATA_MATLAB_HDF5_ARRAYS_H_
#define PLAIT_DATA_MATLAB_HDF5_ARRAYS_H_

#include <string>

#include "absl/status/statusor.h"
#include "data/matlab/matlab.h"

namespace plait::data::matlab {

// As ReadMatlabArray.
absl::StatusOr<MatlabArray> ReadHdf5Array(const std::string& path, const std::string& name);

}  // namespace plait::data::matlab

#endif  // PLAIT_DATA_MATLAB_HDF5_ARRAYS_H_
