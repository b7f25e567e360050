#include "data/cache_folder.h"

#include "absl/strings/str_cat.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"

namespace plait::data {

absl::StatusOr<std::string> MadeCacheFolder(const std::string& named) {
  std::string folder = named;
  if (folder.empty()) {
    PLAIT_ASSIGN_OR_RETURN(folder, base::CacheFolder());
    folder += "/data";
  }
  PLAIT_RETURN_IF_ERROR(CacheError(MakeFolders(folder), named));
  return folder;
}

absl::Status CacheError(const absl::Status& status, const std::string& named) {
  if (status.ok() || !named.empty()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), "; set XDG_CACHE_HOME to a folder that can be written"));
}

}  // namespace plait::data
