// HDF5 dimension scales: named dimensions with coordinates, as netCDF-4 and xarray read them.
//
//   PLAIT_RETURN_IF_ERROR(WriteArray<std::int64_t>(file, "/frame", numbers, {frames}));
//   PLAIT_RETURN_IF_ERROR(MakeDimension(file, "frame"));
//   PLAIT_RETURN_IF_ERROR(AttachDimension(file, "/features", "/frame", 0));
#ifndef PLAIT_DATA_HDF5_DIMENSION_H_
#define PLAIT_DATA_HDF5_DIMENSION_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "data/hdf5/file.h"

namespace plait::data {

// Makes the one-dimensional array /NAME the coordinate of dimension NAME, and sets its long_name.
absl::Status MakeDimension(File& file, const std::string& name);
// The same with a new int64 array 0, 1, ..., length - 1.
absl::Status MakeNumberedDimension(File& file, const std::string& name, std::int64_t length);
// Attaches the dimension scale `dimension` to axis `place` of array `variable`; both are full paths.
absl::Status AttachDimension(File& file, const std::string& variable, const std::string& dimension,
                             unsigned place);

}  // namespace plait::data

#endif  // PLAIT_DATA_HDF5_DIMENSION_H_
