#include "data/matlab/matlab.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"
#include "data/matlab/hdf5_arrays.h"
#include "data/matlab/version5.h"

namespace plait::data {
namespace {

constexpr absl::string_view kHdf5 = "\x89HDF\r\n\x1a\n";
constexpr std::size_t kUserBlock = 512;  // in front of HDF5's part, as MATLAB writes it

}  // namespace

absl::StatusOr<MatlabArray> ReadMatlabArray(const std::string& path, const std::string& name) {
  const absl::StatusOr<std::string> bytes = ReadWholeFile(path);
  PLAIT_RETURN_IF_ERROR(bytes.status());
  const absl::string_view whole = *bytes;
  if (absl::StartsWith(whole, kHdf5) ||
      (whole.size() > kUserBlock && absl::StartsWith(whole.substr(kUserBlock), kHdf5))) {
    return matlab::ReadHdf5Array(path, name);
  }
  absl::StatusOr<MatlabArray> array = matlab::ReadVersion5Array(whole, name);
  if (!array.ok()) return base::Prefixed(array.status(), path);
  return array;
}

}  // namespace plait::data
