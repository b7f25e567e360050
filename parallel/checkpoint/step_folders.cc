#include "parallel/checkpoint/step_folders.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/file_descriptor.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "comm/gathered_text.h"
#include "data/folder_listing.h"
#include "data/hdf5/atomic_file.h"
#include "parallel/checkpoint/checkpoint.h"
#include "parallel/checkpoint/index_file.h"
#include "parallel/checkpoint/shard_file.h"

namespace plait::parallel {
namespace {

namespace fs = std::filesystem;

constexpr char kLatest[] = "latest";
constexpr char kPrefix[] = "step-";
constexpr char kPartial[] = ".partial";

std::string NameOf(std::int64_t step) { return absl::StrFormat("%s%09d", kPrefix, step); }

// The step of a complete folder's name.
std::optional<std::int64_t> StepNamed(absl::string_view name) {
  std::int64_t step = 0;
  absl::string_view digits = name;
  if (!absl::ConsumePrefix(&digits, kPrefix) || !absl::SimpleAtoi(digits, &step) || step < 0)
    return std::nullopt;
  if (NameOf(step) != name) return std::nullopt;  // step-5 would be looked for as step-000000005
  return step;
}

absl::StatusOr<std::vector<std::string>> Partials(const std::string& root) {
  PLAIT_ASSIGN_OR_RETURN(std::vector<std::string> partials,
                         data::NamesIn(root, [](const fs::directory_entry& entry) {
                           const std::string name = entry.path().filename().string();
                           return absl::StartsWith(name, kPrefix) && absl::EndsWith(name, kPartial);
                         }));
  for (std::string& name : partials) name = absl::StrCat(root, "/", name);
  return partials;
}

absl::Status CheckRoom(const std::string& root, std::int64_t bytes) {
  struct statvfs space;
  if (statvfs(root.c_str(), &space) != 0) return base::DiskError(errno, root, "folder cannot be used");
  const double free_bytes = static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize);
  if (static_cast<double>(bytes) <= free_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat("%s: disk full: %.1f MB needed, %.1f MB free", root,
                                                      static_cast<double>(bytes) / 1e6, free_bytes / 1e6));
}

// What cannot be looked at counts as there: Checkpoint::Open then says why.
bool HasIndex(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / kIndexFile, error) || error;
}

bool IsLink(const std::string& path) {
  std::error_code ignored;
  return fs::is_symlink(path, ignored);
}

// None if there is no such file, or it names no step.
absl::StatusOr<std::optional<std::int64_t>> LatestStep(const std::string& root) {
  const absl::StatusOr<std::string> text = data::ReadWholeFile(absl::StrCat(root, "/", kLatest));
  if (text.ok()) return StepNamed(absl::StripAsciiWhitespace(*text));
  if (absl::IsNotFound(text.status())) return std::optional<std::int64_t>();
  return text.status();
}

// Folders in which a checkpoint is looked for, in this order.
absl::StatusOr<std::vector<std::string>> Candidates(const std::string& root) {
  if (HasIndex(root)) return std::vector<std::string>{root};
  PLAIT_ASSIGN_OR_RETURN(std::vector<std::int64_t> steps, CompleteSteps(root));
  PLAIT_ASSIGN_OR_RETURN(const std::optional<std::int64_t> latest, LatestStep(root));
  std::reverse(steps.begin(), steps.end());
  if (latest.has_value()) {
    std::erase(steps, *latest);
    steps.insert(steps.begin(), *latest);
    std::stable_partition(steps.begin(), steps.end(), [&](std::int64_t step) { return step <= *latest; });
  }
  std::vector<std::string> folders;
  for (const std::int64_t step : steps) folders.push_back(StepFolder(root, step));
  return folders;
}

// The two folders exchange names, so that the older checkpoint becomes the partial one. NFS and Lustre cannot exchange:
// the older one then has a partial name first, and after a crash in between the newest checkpoint before it is loaded.
absl::Status ReplaceFolder(const std::string& partial, const std::string& whole) {
  if (renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, whole.c_str(), RENAME_EXCHANGE) == 0)
    return absl::OkStatus();
  const auto failed = [&whole](int error) {
    return base::DiskError(error, whole, "exists and cannot be replaced");
  };
  if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) return failed(errno);
  const std::string older = absl::StrCat(whole, ".replaced", kPartial);
  if (rename(whole.c_str(), older.c_str()) != 0) return failed(errno);
  if (rename(partial.c_str(), whole.c_str()) == 0) return absl::OkStatus();
  const int error = errno;
  rename(older.c_str(), whole.c_str());
  return failed(error);
}

}  // namespace

std::string StepFolder(const std::string& root, std::int64_t step) {
  return absl::StrCat(root, "/", NameOf(step));
}

std::string PartialFolder(const std::string& root, std::int64_t step) {
  return StepFolder(root, step) + kPartial;
}

absl::StatusOr<std::vector<std::int64_t>> CompleteSteps(const std::string& root) {
  std::vector<std::int64_t> steps;
  const auto take = [&steps](const fs::directory_entry& entry) {
    const std::optional<std::int64_t> step = StepNamed(entry.path().filename().string());
    if (!step || !HasIndex(entry.path())) return false;
    steps.push_back(*step);
    return true;
  };
  const absl::Status listed = data::NamesIn(root, take).status();
  if (!listed.ok() && !absl::IsNotFound(listed)) return listed;
  std::sort(steps.begin(), steps.end());
  return steps;
}

absl::StatusOr<std::string> FindLatestCheckpoint(const std::string& root, absl::Status* skipped) {
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::string> folders, Candidates(root));
  absl::Status first, damaged;
  for (const std::string& folder : folders) {
    const absl::Status opened = Checkpoint::Open(folder).status();
    if (opened.ok()) {
      if (skipped != nullptr) *skipped = first;
      return folder;
    }
    first.Update(opened);
    if (HasIndex(folder)) damaged.Update(opened);
  }
  if (damaged.ok()) return absl::NotFoundError(absl::StrCat(root, ": no complete checkpoint there"));
  return absl::DataLossError(absl::StrCat("no checkpoint that can be loaded: ", damaged.message()));
}

absl::StatusOr<std::string> FindLatestCheckpoint(const comm::Communicator& comm, const std::string& root,
                                                 absl::Status* skipped) {
  absl::StatusOr<std::string> found("");
  if (comm.rank() == 0) found = FindLatestCheckpoint(root, skipped);
  PLAIT_RETURN_IF_ERROR(comm.Agree(found.status()));
  return comm::GatherText(comm, *found)[0];
}

absl::Status MakeReady(const std::string& root, std::int64_t bytes) {
  PLAIT_RETURN_IF_ERROR(data::MakeFolders(root));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::string> left, Partials(root));
  for (const std::string& folder : left) base::RemoveTree(folder);
  return CheckRoom(root, bytes);
}

void RemovePartialFolder(const std::string& root, std::int64_t step) {
  base::RemoveTree(PartialFolder(root, step));
}

absl::Status PublishFolder(const std::string& root, std::int64_t step) {
  const std::string partial = PartialFolder(root, step), whole = StepFolder(root, step);
  base::SyncFolder(partial);
  if (rename(partial.c_str(), whole.c_str()) != 0) {
    const int error = errno;
    const bool is_there = error == ENOTEMPTY || error == EEXIST || (error == ENOTDIR && IsLink(whole));
    if (!is_there) return base::DiskError(error, partial, "cannot be renamed");
    PLAIT_RETURN_IF_ERROR(ReplaceFolder(partial, whole));
  }
  // Otherwise a power failure could leave the old names, with the older checkpoint's files already removed.
  base::SyncFolder(root);
  return absl::OkStatus();
}

absl::Status WriteLatest(const std::string& root, std::int64_t step) {
  return data::WriteWholeFile(absl::StrCat(root, "/", kLatest), NameOf(step) + "\n");
}

std::vector<std::int64_t> StepsAfter(const std::string& root, std::int64_t step) {
  std::vector<std::int64_t> steps = CompleteSteps(root).value_or(std::vector<std::int64_t>());
  std::erase_if(steps, [step](std::int64_t other) { return other <= step; });
  return steps;
}

void RetireOlder(const std::string& root, std::int64_t step, int keep,
                 const std::vector<std::int64_t>& superseded) {
  if (keep <= 0) return;
  std::vector<std::int64_t> steps = CompleteSteps(root).value_or(std::vector<std::int64_t>());
  steps.erase(std::lower_bound(steps.begin(), steps.end(), step), steps.end());
  const auto surplus = static_cast<std::int64_t>(steps.size()) - (keep - 1);
  if (surplus <= 0) return;
  std::stable_partition(steps.begin(), steps.end(), [&superseded](std::int64_t other) {
    return std::find(superseded.begin(), superseded.end(), other) != superseded.end();
  });
  steps.resize(surplus);
  for (const std::int64_t old : steps)
    rename(StepFolder(root, old).c_str(), PartialFolder(root, old).c_str());
  // Before any file is removed, so that neither a kill nor a power failure leaves a damaged folder with a final name.
  base::SyncFolder(root);
}

void RemovePartials(const comm::Communicator& comm, const std::string& root) {
  const std::string own = ShardFileName(comm.rank());
  const std::vector<std::string> folders = Partials(root).value_or(std::vector<std::string>());
  for (const std::string& folder : folders) {
    // The checkpoint that a link points to is not of this folder, and stays.
    if (!IsLink(folder)) unlink(absl::StrCat(folder, "/", own).c_str());
  }
  comm.Barrier();
  if (comm.rank() > 0) return;
  for (const std::string& folder : folders) base::RemoveTree(folder);
}

}  // namespace plait::parallel
