// Version 5 of MATLAB's files, in memory.
#ifndef PLAIT_DATA_MATLAB_VERSION5_H_
#define PLAIT_DATA_MATLAB_VERSION5_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data/matlab/matlab.h"

namespace plait::data::matlab {

// As ReadMatlabArray, from the contents of a file; messages do not name the file.
absl::StatusOr<MatlabArray> ReadVersion5Array(absl::string_view file, const std::string& name);

// Index of variable `name` in `names`, or of the only one if `name` is empty. Errors of ReadMatlabArray.
absl::StatusOr<std::size_t> ChooseVariable(const std::vector<std::string>& names, const std::string& name);

// InvalidArgument: "variable NAME: WHAT; expected a real numeric array".
absl::Status NotNumeric(const std::string& name, absl::string_view what);

}  // namespace plait::data::matlab

#endif  // PLAIT_DATA_MATLAB_VERSION5_H_
