// Where users' paths point, whether one can write there, and removing what was written.
//
//   const std::string folder = FromUser(absl::GetFlag(FLAGS_checkpoint_dir));
//   PLAIT_RETURN_IF_ERROR(Prefixed(ProbeWritableFolder(folder), "--checkpoint-dir"));
//
// Local, no global state besides the environment.
#ifndef PLAIT_BASE_PATH_H_
#define PLAIT_BASE_PATH_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace plait::base {

// A path that the user typed, made absolute: relative to where the command was typed. `bazel run` starts
// programs in a folder of its own and gives the user's in BUILD_WORKING_DIRECTORY. A leading "~/" is the home
// folder (a shell does not expand it in --flag=~/x). An empty path stays empty.
std::string FromUser(const std::string& path);

// Makes the folder and those above it, as needed; their names are on the disk when it returns.
absl::Status MakeFolders(const std::string& folder);

// What was made, renamed and removed in the folder is on the disk when it returns. A file system that cannot flush
// folders (some of the network) is no error: it does not undo what was written.
void SyncFolder(const std::string& folder);

// Makes the folder with its parents, writes a small file there, forces it to disk and removes it. The error
// says which folder and why: a missing permission, a read-only or full disk, a file in the way.
absl::Status ProbeWritableFolder(const std::string& folder);

// The same for a file that is to be written: its folder must exist and take files, and the name must not be a
// folder's. The file itself is neither made nor changed.
absl::Status ProbeWritableFile(const std::string& file);

// Removes a file, or a folder with all that is in it; what cannot be removed, and what symbolic links point
// to, stays. Use it instead of std::filesystem::remove_all: LibTorch's libtorch.so, which programs with CUDA
// link, has one of its own that takes its place and crashes.
void RemoveTree(const std::string& path);

// Where prepared data may be kept between runs: $XDG_CACHE_HOME/plait, else ~/.cache/plait (the home folder
// from HOME, else from the user database). Not made. NotFound when the user has no home.
absl::StatusOr<std::string> CacheFolder();

}  // namespace plait::base

#endif  // PLAIT_BASE_PATH_H_
