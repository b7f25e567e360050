#include "data/matlab/matlab.h"

#include <filesystem>
#include <fstream>
#include <system_error>

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

// By its first bytes. False for what is no file, and for a pipe, which has no bytes to look at beforehand.
bool IsHdf5(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::string head(kUserBlock + kHdf5.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(file.gcount()));
  return absl::StartsWith(head, kHdf5) || absl::StartsWith(absl::ClippedSubstr(head, kUserBlock), kHdf5);
}

}  // namespace

absl::StatusOr<MatlabArray> ReadMatlabArray(const std::string& path, const std::string& name) {
  if (IsHdf5(path)) return matlab::ReadHdf5Array(path, name);
  const absl::StatusOr<std::string> bytes = ReadWholeFile(path);
  PLAIT_RETURN_IF_ERROR(bytes.status());
  absl::StatusOr<MatlabArray> array = matlab::ReadVersion5Array(*bytes, name);
  if (!array.ok()) return base::Prefixed(array.status(), path);
  return array;
}

}  // namespace plait::data
