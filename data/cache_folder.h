// The directory for prepared data: one given by the caller, or the user's cache.
#ifndef PLAIT_DATA_CACHE_FOLDER_H_
#define PLAIT_DATA_CACHE_FOLDER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace plait::data {

// Returns `named`, or base::CacheFolder() + "/data" if it is empty. Creates the directory. Local.
absl::StatusOr<std::string> MadeCacheFolder(const std::string& named);

// Adds to an error of writing there that XDG_CACHE_HOME selects another directory, unless the caller gave `named`.
absl::Status CacheError(const absl::Status& status, const std::string& named);

}  // namespace plait::data

#endif  // PLAIT_DATA_CACHE_FOLDER_H_
