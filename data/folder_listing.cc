#include "data/folder_listing.h"

#include <algorithm>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plait::data {
namespace fs = std::filesystem;

absl::StatusOr<std::vector<std::string>> NamesIn(
    const std::string& folder, const std::function<bool(const fs::directory_entry&)>& wanted) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!absl::StartsWith(name, ".") && wanted(*entry)) names.push_back(name);
  }
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat(folder, ": cannot be listed"));
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::vector<std::string>> ClassFoldersIn(const std::string& folder) {
  const auto is_folder = [](const fs::directory_entry& entry) {
    std::error_code ignored;
    return entry.is_directory(ignored);
  };
  PLAIT_ASSIGN_OR_RETURN(std::vector<std::string> names, NamesIn(folder, is_folder));
  for (const std::string& name : names) {
    if (name.find_first_of("\r\n") == std::string::npos) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        folder, "/", absl::CHexEscape(name), ": the name of a class has a line break; rename the folder"));
  }
  return names;
}

}  // namespace plait::data
