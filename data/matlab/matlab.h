// Numeric arrays of MATLAB's .mat files: version 5 (plain or compressed, either byte order) and 7.3 (HDF5).
//
//   PLAIT_ASSIGN_OR_RETURN(const MatlabArray cube, ReadMatlabArray("Indian_pines_corrected.mat"));
//   cube.shape                             // {145, 145, 200}
//   cube.values[i + 145 * (j + 145 * k)]   // element (i, j, k): MATLAB's order, the first index fastest
//
// Format: MathWorks, "MAT-File Format" (version 5); version 7.3 is HDF5 with an attribute MATLAB_class and dimensions in
// reverse. Errors are one line, "FILE: what": NotFound for the file or a variable; DataLoss for truncated or damaged
// files, and sizes that do not fit the file; InvalidArgument for another format (MATLAB 4 included) and for
// variables that are not real numeric arrays: cells, structures, objects, text, sparse, complex and, in version 7.3,
// empty ones. Sizes are checked against the file before memory is allocated. Local.
#ifndef PLAIT_DATA_MATLAB_MATLAB_H_
#define PLAIT_DATA_MATLAB_MATLAB_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace plait::data {

struct MatlabArray {
  std::string name;
  std::vector<std::int64_t> shape;  // two dimensions or more
  // Column-major. Integers of 64 bits beyond 2^53 are rounded.
  std::vector<double> values;
};

// Reads variable `name`; if it is empty, the only variable of the file, InvalidArgument unless there is exactly one.
absl::StatusOr<MatlabArray> ReadMatlabArray(const std::string& path, const std::string& name = "");

}  // namespace plait::data

#endif  // PLAIT_DATA_MATLAB_MATLAB_H_
