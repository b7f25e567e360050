#include "data/hdf5/dimension.h"

#include <hdf5_hl.h>

#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/hdf5/handle.h"

namespace plait::data {

absl::Status MakeDimension(File& file, const std::string& name) {
  QuietHdf5 quiet;
  const std::string path = "/" + name;
  const Handle scale(H5Dopen2(file.id(), path.c_str(), H5P_DEFAULT));
  if (H5DSset_scale(scale.id(), name.c_str()) < 0)
    return Hdf5Error(absl::StrCat(file.path(), ": ", path), "cannot become a dimension");
  return SetAttribute(file, path, "long_name", name);
}

absl::Status MakeNumberedDimension(File& file, const std::string& name, std::int64_t length) {
  std::vector<std::int64_t> numbers(length);
  std::iota(numbers.begin(), numbers.end(), 0);
  PLAIT_RETURN_IF_ERROR(WriteArray<std::int64_t>(file, "/" + name, numbers, {length}));
  return MakeDimension(file, name);
}

absl::Status AttachDimension(File& file, const std::string& variable, const std::string& dimension,
                             unsigned place) {
  QuietHdf5 quiet;
  const Handle scale(H5Dopen2(file.id(), dimension.c_str(), H5P_DEFAULT));
  const Handle array(H5Dopen2(file.id(), variable.c_str(), H5P_DEFAULT));
  if (H5DSattach_scale(array.id(), scale.id(), place) >= 0) return absl::OkStatus();
  return Hdf5Error(absl::StrCat(file.path(), ": ", variable),
                   absl::StrCat("cannot be put along ", dimension));
}

}  // namespace plait::data
