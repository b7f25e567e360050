#include "base/path.h"

#include <fcntl.h>
#include <ftw.h>
#include <pwd.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "base/status_macros.h"

namespace plait::base {
namespace {

namespace fs = std::filesystem;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string HomeFolder() {
  if (std::string home = Environment("HOME"); !home.empty()) return home;
  std::vector<char> text(16384);
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(getuid(), &entry, text.data(), text.size(), &found) != 0 || found == nullptr) return "";
  return found->pw_dir;
}

absl::Status CannotWrite(const std::string& where, int error) {
  return absl::PermissionDeniedError(
      absl::StrCat("cannot write in ", where, ": ", std::generic_category().message(error)));
}

// Writes and syncs a block, which fails on a full disk; returns 0 or an errno.
int WriteBlock(int file) {
  const std::vector<char> block(4096, 'x');
  const ssize_t written = write(file, block.data(), block.size());
  if (written < 0) return errno;
  if (written < static_cast<ssize_t>(block.size())) return ENOSPC;
  return fsync(file) == 0 ? 0 : errno;
}

absl::Status WriteProbe(const std::string& folder) {
  std::string name = folder + "/.write_probe_XXXXXX";
  const int file = mkostemp(name.data(), O_CLOEXEC);
  if (file < 0) return CannotWrite(folder, errno);
  const int error = WriteBlock(file);
  close(file);
  unlink(name.c_str());
  return error == 0 ? absl::OkStatus() : CannotWrite(folder, error);
}

}  // namespace

std::string FromUser(const std::string& path) {
  if (path.empty() || path[0] == '/') return path;
  if (path == "~" || absl::StartsWith(path, "~/")) return HomeFolder() + path.substr(1);
  std::string typed_in = Environment("BUILD_WORKING_DIRECTORY");
  if (typed_in.empty()) typed_in = fs::current_path().string();
  return (fs::path(typed_in) / path).lexically_normal().string();
}

absl::Status MakeFolders(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> absent;
  for (fs::path path = fs::absolute(folder, error); !error && !fs::exists(path, error);
       path = path.parent_path())
    absent.push_back(path);
  fs::create_directories(folder, error);
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot create directory ", folder));
  for (const fs::path& made : absent) SyncFolder(made.parent_path());
  return absl::OkStatus();
}

void SyncFolder(const std::string& folder) {
  const absl::StatusOr<FileDescriptor> opened = FileDescriptor::Open(folder, FileDescriptor::Mode::kRead);
  if (opened.ok()) opened->Sync().IgnoreError();
}

absl::Status ProbeWritableFolder(const std::string& folder) {
  const absl::Status made = MakeFolders(folder);
  return made.ok() ? WriteProbe(folder) : absl::PermissionDeniedError(made.message());
}

absl::Status ProbeWritableFile(const std::string& file) {
  std::error_code error;
  if (fs::is_directory(file, error)) {
    return absl::InvalidArgumentError(absl::StrCat(file, " is a folder; expected the name of a file"));
  }
  const std::string parent = fs::path(file).parent_path().string();
  const std::string folder = parent.empty() ? "." : parent;
  if (!fs::is_directory(folder, error)) {
    return absl::NotFoundError(absl::StrCat("cannot write ", file, ": there is no folder ", folder));
  }
  if (fs::exists(file, error) && access(file.c_str(), W_OK) != 0) return CannotWrite(file, errno);
  return WriteProbe(folder);
}

void RemoveTree(const std::string& path) {
  constexpr int kOpenFolders = 8;
  const auto remove_one = [](const char* entry, const struct stat*, int, struct FTW*) {
    std::remove(entry);
    return 0;
  };
  nftw(path.c_str(), remove_one, kOpenFolders, FTW_DEPTH | FTW_PHYS);
}

absl::StatusOr<std::string> CacheFolder() {
  // The XDG specification says to ignore relative paths.
  if (const std::string cache = Environment("XDG_CACHE_HOME"); absl::StartsWith(cache, "/"))
    return cache + "/plait";
  const std::string home = HomeFolder();
  if (home.empty()) return absl::NotFoundError("no home folder: set HOME or XDG_CACHE_HOME");
  return home + "/.cache/plait";
}

}  // namespace plait::base
