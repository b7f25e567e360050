#include "data/images/regular_file.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace plait::data {
namespace fs = std::filesystem;

absl::Status CheckRegularFile(const std::string& path, std::int64_t at_most) {
  std::error_code error;
  const fs::file_status found = fs::status(path, error);
  if (!fs::exists(found)) return absl::OkStatus();
  if (!fs::is_regular_file(found)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": expected a regular file"));
  }
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (error || bytes <= static_cast<std::uintmax_t>(at_most)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": has ", bytes, " bytes; expected no more than ", at_most));
}

}  // namespace plait::data
