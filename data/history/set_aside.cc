#include "data/history/set_aside.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace plait::data {

namespace fs = std::filesystem;

absl::Status SetAside(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return absl::OkStatus();
  int number = 1;
  while (fs::exists(absl::StrCat(path, ".", number), error)) ++number;
  fs::rename(path, absl::StrCat(path, ".", number), error);
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(error.value(), absl::StrCat(path, ": cannot be moved aside"));
}

absl::Status MakeRoomFor(const std::string& path, bool move_old_aside) {
  if (move_old_aside) return SetAside(path);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(path, ": holds an earlier run: choose another name or remove the file"));
}

}  // namespace plait::data
