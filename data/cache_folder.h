// Where prepared data is kept: a folder that the caller names, or the user's cache.
#ifndef PLAIT_DATA_CACHE_FOLDER_H_
#define PLAIT_DATA_CACHE_FOLDER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace plait::data {

// `named`, or data/ in base::CacheFolder() if it is empty; made where it is missing.
absl::StatusOr<std::string> MadeCacheFolder(const std::string& named);

// An error of writing there says which variable names another folder, unless the caller has named it.
absl::Status CacheError(const absl::Status& status, const std::string& named);

}  // namespace plait::data

#endif  // PLAIT_DATA_CACHE_FOLDER_H_
