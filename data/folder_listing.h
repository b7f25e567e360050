// Names of the files and folders in a folder.
#ifndef PLAIT_DATA_FOLDER_LISTING_H_
#define PLAIT_DATA_FOLDER_LISTING_H_

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace plait::data {

// The names for which `wanted` returns true, sorted by bytes; without hidden ones, which other programs leave:
// .ipynb_checkpoints, ._1.png. NOT_FOUND, PERMISSION_DENIED or another code of errno, with the folder's path, if it
// cannot be listed to its end.
absl::StatusOr<std::vector<std::string>> NamesIn(
    const std::string& folder, const std::function<bool(const std::filesystem::directory_entry&)>& wanted);

// Names of folders and of links to folders, one for each class. As NamesIn; INVALID_ARGUMENT if a name has a line break,
// which lists of classes (one per line) cannot hold.
absl::StatusOr<std::vector<std::string>> ClassFoldersIn(const std::string& folder);

}  // namespace plait::data

#endif  // PLAIT_DATA_FOLDER_LISTING_H_
