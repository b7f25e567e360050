#include "data/matlab/hdf5_arrays.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/hdf5/file.h"
#include "data/matlab/version5.h"

namespace plait::data::matlab {
namespace {

template <typename T>
absl::StatusOr<std::vector<double>> ReadAs(const File& file, const std::string& name) {
  PLAIT_ASSIGN_OR_RETURN(const std::vector<T> values, ReadArray<T>(file, name));
  return std::vector<double>(values.begin(), values.end());
}

absl::StatusOr<std::vector<double>> ReadValues(const File& file, const std::string& name,
                                               const std::string& matlab_class) {
  if (matlab_class == "double" || matlab_class == "single") return ReadArray<double>(file, name);
  // HDF5 takes the largest number of a type for larger ones.
  if (matlab_class == "uint64") return ReadAs<std::uint64_t>(file, name);
  if (matlab_class == "logical" || absl::StartsWith(matlab_class, "uint") ||
      absl::StartsWith(matlab_class, "int")) {
    return ReadAs<std::int64_t>(file, name);
  }
  return base::Prefixed(NotNumeric(name, absl::StrCat("of class ", matlab_class)), file.path());
}

}  // namespace

absl::StatusOr<MatlabArray> ReadHdf5Array(const std::string& path, const std::string& name) {
  PLAIT_ASSIGN_OR_RETURN(const File file, File::OpenForeign(path));
  PLAIT_ASSIGN_OR_RETURN(std::vector<std::string> names, file.Names("/"));
  std::erase_if(names, [](const std::string& text) { return absl::StartsWith(text, "#"); });  // MATLAB's own
  const absl::StatusOr<std::size_t> choice = ChooseVariable(names, name);
  if (!choice.ok()) return base::Prefixed(choice.status(), path);
  MatlabArray array = {.name = names[*choice], .shape = {}, .values = {}};
  PLAIT_ASSIGN_OR_RETURN(const std::string matlab_class, TextAttribute(file, array.name, "MATLAB_class"));
  if (HasAttribute(file, array.name, "MATLAB_sparse")) {
    return base::Prefixed(NotNumeric(array.name, "a sparse array"), path);
  }
  if (HasAttribute(file, array.name, "MATLAB_empty")) {
    return base::Prefixed(NotNumeric(array.name, "an empty array"), path);
  }
  PLAIT_ASSIGN_OR_RETURN(array.values, ReadValues(file, array.name, matlab_class));
  PLAIT_ASSIGN_OR_RETURN(array.shape, ArrayShape(file, array.name));
  // HDF5's last index is the fastest one, MATLAB's the first.
  std::reverse(array.shape.begin(), array.shape.end());
  return array;
}

}  // namespace plait::data::matlab
