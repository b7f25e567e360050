#include "data/hdf5/atomic_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file_descriptor.h"
#include "base/host_name.h"
#include "base/status_macros.h"

namespace plait::data {
namespace {

namespace fs = std::filesystem;

// Only names of this host whose process is gone: another host's processes cannot be asked.
void RemoveLeftovers(const std::string& folder, const std::string& prefix) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    int process = 0;
    if (!absl::StartsWith(name, prefix) || !absl::SimpleAtoi(name.substr(prefix.size()), &process)) continue;
    if (kill(process, 0) != 0 && errno == ESRCH) base::RemoveTree(entry.path().string());
  }
}

absl::Status CheckFolder(const std::string& folder, std::int64_t expected_bytes) {
  struct statvfs space;
  if (statvfs(folder.c_str(), &space) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(folder, ": folder cannot be used"));
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(folder, ": folder is not writable"));
  }
  const double free_bytes = static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize);
  if (static_cast<double>(expected_bytes) <= free_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat("%s: disk full: %.1f MB needed, %.1f MB free", folder,
                                                      expected_bytes / 1e6, free_bytes / 1e6));
}

absl::Status Flush(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(const base::FileDescriptor file,
                         base::FileDescriptor::Open(path, base::FileDescriptor::Mode::kReadWrite));
  return file.Sync();
}

// Made here, so that the writer follows no link that was planted under this name.
absl::Status MakeEmpty(const std::string& path, mode_t mode) {
  unlink(path.c_str());
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (file < 0) return base::DiskError(errno, path, "cannot be made");
  close(file);
  return absl::OkStatus();
}

// Writes `partial` and gives it the name of `file`. In place of a file, which may be private, it is private until it
// has that file's mode.
absl::Status WriteAndRename(const std::string& partial, const std::string& file,
                            const std::function<absl::Status(const std::string&)>& write) {
  struct stat replaced;
  const bool replaces = stat(file.c_str(), &replaced) == 0;
  PLAIT_RETURN_IF_ERROR(MakeEmpty(partial, replaces ? 0600 : 0666));
  PLAIT_RETURN_IF_ERROR(write(partial));
  PLAIT_RETURN_IF_ERROR(Flush(partial));
  // Last, as the mode may not allow writing. Some network file systems have no modes.
  if (replaces) chmod(partial.c_str(), replaced.st_mode & 0777);
  if (rename(partial.c_str(), file.c_str()) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "cannot be renamed");
}

// The regular file that a rename to the result replaces.
absl::StatusOr<std::string> FileToReplace(const std::string& path) {
  std::error_code error;
  const fs::file_status found = fs::status(path, error);
  if (fs::exists(found) && !fs::is_regular_file(found) && !fs::is_directory(found)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " not written: it is no regular file, which a rename could replace"));
  }
  const std::string file = FileAt(path);
  if (!fs::is_symlink(file, error)) return file;
  return absl::ErrnoToStatus(ELOOP, absl::StrCat(path, " not written"));
}

}  // namespace

std::string PartialBeside(const std::string& path) {
  const std::string folder = FolderOf(path);
  const std::string prefix =
      absl::StrCat(".", fs::path(path).filename().string(), ".partial.", base::HostName(), ".");
  RemoveLeftovers(folder, prefix);
  return absl::StrCat(folder, "/", prefix, getpid());
}

std::string FileAt(const std::string& path) {
  constexpr int kMostLinks = 40;  // Linux's limit
  std::error_code error;
  fs::path file = path;
  for (int links = 0; links < kMostLinks && fs::is_symlink(file, error); ++links) {
    const fs::path target = fs::read_symlink(file, error);
    if (error) break;
    file = file.parent_path() / target;
  }
  return file.string();
}

std::string FolderOf(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, std::int64_t at_most) {
  constexpr std::uintmax_t kLeast = 512, kUnknown = std::uintmax_t{1} << 16;
  const auto unreadable = [&](int error) {
    return absl::ErrnoToStatus(error, absl::StrCat(path, ": cannot be read"));
  };
  std::error_code none;
  if (fs::is_directory(path, none)) return unreadable(EISDIR);
  std::ifstream file(path, std::ios::binary);
  if (!file) return unreadable(errno);
  const std::uintmax_t size = fs::file_size(path, none);  // pipes have none
  // With room for one byte more, at which the end shows.
  const std::size_t room = none ? kUnknown : std::max(kLeast, std::min<std::uintmax_t>(size, at_most) + 1);
  std::string bytes;
  while (file && static_cast<std::int64_t>(bytes.size()) <= at_most) {
    const std::size_t before = bytes.size();
    bytes.resize(before + std::max(room, before));
    file.read(&bytes[before], static_cast<std::streamsize>(bytes.size() - before));
    bytes.resize(before + static_cast<std::size_t>(file.gcount()));
  }
  if (static_cast<std::int64_t>(bytes.size()) > at_most) {
    return absl::DataLossError(
        absl::StrCat(path, ": more than ", at_most, " bytes; expected no more than that"));
  }
  if (file.eof()) return bytes;
  return unreadable(errno == 0 ? EIO : errno);
}

absl::Status WriteAtomically(const std::string& path, std::int64_t expected_bytes,
                             const std::function<absl::Status(const std::string&)>& write) {
  PLAIT_ASSIGN_OR_RETURN(const std::string file, FileToReplace(path));
  const std::string folder = FolderOf(file);
  PLAIT_RETURN_IF_ERROR(
      base::Prefixed(CheckFolder(folder, expected_bytes), absl::StrCat(path, " not written")));
  const std::string partial = PartialBeside(file);
  const absl::Status status = WriteAndRename(partial, file, write);
  if (!status.ok()) {
    unlink(partial.c_str());
    return base::Prefixed(status, absl::StrCat(path, " not written"));
  }
  base::SyncFolder(folder);
  return absl::OkStatus();
}

absl::Status WriteWholeFile(const std::string& path, absl::string_view contents) {
  const auto size = static_cast<std::int64_t>(contents.size());
  return WriteAtomically(path, size, [&](const std::string& partial) -> absl::Status {
    PLAIT_ASSIGN_OR_RETURN(const base::FileDescriptor file,
                           base::FileDescriptor::Open(partial, base::FileDescriptor::Mode::kCreate));
    return file.WriteAt(contents.data(), size, 0);
  });
}

}  // namespace plait::data
