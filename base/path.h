// Resolves paths given by users, checks that they are writable, and creates and removes directories.
//
//   const std::string folder = FromUser(absl::GetFlag(FLAGS_checkpoint_dir));
//   PLAIT_RETURN_IF_ERROR(Prefixed(ProbeWritableFolder(folder), "--checkpoint-dir"));
//
// Local.
#ifndef PLAIT_BASE_PATH_H_
#define PLAIT_BASE_PATH_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace plait::base {

// Resolves a path given by the user, relative to the directory in which the command was typed: `bazel run` changes the
// working directory and passes the user's in BUILD_WORKING_DIRECTORY. A leading "~" is expanded (a shell does not do so
// in --flag=~/x). An empty path stays empty.
std::string FromUser(const std::string& path);

// Creates the directory and its parents as needed, and syncs the parents, so that the names survive a power loss. The
// error has errno's code.
absl::Status MakeFolders(const std::string& folder);

// fsync of the directory: files created, renamed and removed in it are durable on return. Errors are ignored: some
// network file systems cannot sync directories.
void SyncFolder(const std::string& folder);

// Creates the directory with its parents, writes a small file there, syncs and removes it. PERMISSION_DENIED, with
// directory and reason, if that fails: a missing permission, a read-only or full disk, a file of that name.
absl::Status ProbeWritableFolder(const std::string& folder);

// Checks that a file can be written, without creating or changing it. NOT_FOUND if its directory does not exist,
// INVALID_ARGUMENT if the path is a directory, PERMISSION_DENIED if the file or the directory is not writable.
absl::Status ProbeWritableFile(const std::string& file);

// Removes a file, or a directory recursively. Ignores errors; does not follow symbolic links. Use it instead of
// std::filesystem::remove_all: libtorch.so, which CUDA programs link, exports its own copy of that symbol, which is
// called instead and crashes.
void RemoveTree(const std::string& path);

// Directory for prepared data that is kept between runs: $XDG_CACHE_HOME/plait, else ~/.cache/plait (home from HOME,
// else from the user database). Not created. NOT_FOUND if the user has no home directory.
absl::StatusOr<std::string> CacheFolder();

}  // namespace plait::base

#endif  // PLAIT_BASE_PATH_H_
