#include "tools/training/folder_lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file_descriptor.h"
#include "base/host_name.h"
#include "base/status_macros.h"

namespace plait::training {
namespace {

std::string ContentOf(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

absl::Status FileError(const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(path, ": the lock cannot be made"));
}

// Start time of the process since boot, in clock ticks, because pids are reused. Empty if there is no such process, or
// only a zombie that nobody reaps, as in containers without an init.
std::string StartOf(int pid) {
  const std::string stat = ContentOf(absl::StrCat("/proc/", pid, "/stat"));
  const std::size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos) return "";
  const std::vector<std::string> fields = absl::StrSplit(stat.substr(name_end + 2), ' ');
  return fields.size() > 19 && fields[0] != "Z" ? fields[19] : "";
}

// The PID namespace: containers may share a host name without seeing each other's processes.
std::string Namespace() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/ns/pid", ignored).string();
}

std::string OwnContent(const FolderLockOptions& options) {
  return absl::StrCat("host=", options.host, "\npid=", getpid(), "\nstart=", StartOf(getpid()),
                      "\nnamespace=", Namespace(), "\njob=", options.job_id, "\n");
}

struct Owner {
  std::string host, start, process_namespace, job;
  int pid = 0;
};

Owner OwnerOf(const std::string& content) {
  std::map<std::string, std::string> fields;
  for (const absl::string_view line : absl::StrSplit(content, '\n', absl::SkipEmpty())) {
    fields.insert(absl::StrSplit(line, absl::MaxSplits('=', 1)));
  }
  Owner owner = {.host = fields["host"],
                 .start = fields["start"],
                 .process_namespace = fields["namespace"],
                 .job = fields["job"]};
  if (!absl::SimpleAtoi(fields["pid"], &owner.pid)) owner.pid = 0;
  return owner;
}

bool Lives(const Owner& owner) {
  if (owner.pid <= 0 || (kill(owner.pid, 0) != 0 && errno == ESRCH)) return false;
  return StartOf(owner.pid) == owner.start;
}

// Modification time (seconds, nanoseconds), read after opening the file; zeros if there is no file, none if it cannot be
// opened.
using Time = std::pair<std::int64_t, std::int64_t>;
std::optional<Time> TouchTime(const std::string& path) {
  struct stat status = {};
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno == ENOENT ? std::optional(Time()) : std::nullopt;
  fstat(file, &status);
  close(file);
  return Time(status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

// True if the file disappears, or is not touched or replaced within `seconds`; false if it cannot be opened.
bool StaysUntouched(const std::string& path, double seconds) {
  const std::optional<Time> before = TouchTime(path);
  if (!before.has_value()) return false;
  std::optional<Time> now = before;
  for (double waited = 0; waited < seconds && now == before && now != Time(); waited += 0.25) {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    now = TouchTime(path);
  }
  return now == before || now == Time();
}

std::string NameOf(const Owner& owner) {
  return owner.pid == 0 ? "another process" : absl::StrCat("process ", owner.pid, " on ", owner.host);
}

bool IsLeft(const std::string& path, const Owner& owner, const FolderLockOptions& options) {
  if (owner.host == options.host && owner.process_namespace == Namespace()) return !Lives(owner);
  options.say(absl::StrCat(path, ": of ", NameOf(owner), "; waiting up to ", options.watch_seconds,
                           " s to see whether it is alive"));
  return StaysUntouched(path, options.watch_seconds);
}

// Removes the lock at `path` if it is still the one with `content`; one that another process put there meanwhile is left
// alone. Of processes that find the same old lock, flock() on the folder lets in one; where the file system has no
// flock(), a new lock that was taken for the old one is put back.
void RemoveLeft(const std::string& folder, const std::string& path, const std::string& content) {
  const auto parent = base::FileDescriptor::Open(folder, base::FileDescriptor::Mode::kRead);
  if (parent.ok() && !parent->Lock().ok()) return;
  if (ContentOf(path) != content) return;
  const std::string aside = absl::StrCat(path, ".", base::HostName(), ".", getpid(), ".left");
  if (rename(path.c_str(), aside.c_str()) != 0) return;
  if (ContentOf(aside) != content) (void)!link(aside.c_str(), path.c_str());
  unlink(aside.c_str());
}

// Synced, because a lock that is empty after a power loss would name no owner to look for.
absl::Status WriteToDisk(const std::string& path, const std::string& content) {
  PLAIT_ASSIGN_OR_RETURN(const base::FileDescriptor file,
                         base::FileDescriptor::Open(path, base::FileDescriptor::Mode::kCreate));
  PLAIT_RETURN_IF_ERROR(file.WriteAt(content.data(), static_cast<std::int64_t>(content.size()), 0));
  return file.Sync();
}

// Makes the file with its content in one step. AlreadyExists where there is one.
absl::Status Link(const std::string& path, const std::string& content) {
  const std::string own = absl::StrCat(path, ".", base::HostName(), ".", getpid());
  PLAIT_RETURN_IF_ERROR(WriteToDisk(own, content));
  const int linked = link(own.c_str(), path.c_str());
  const int error = errno;
  unlink(own.c_str());
  errno = error;
  return linked == 0 ? absl::OkStatus() : FileError(path);
}

absl::Status InUse(const std::string& path, const Owner& owner) {
  return absl::AlreadyExistsError(
      absl::StrCat(path, ": ", NameOf(owner), owner.job.empty() ? "" : absl::StrCat(" (job ", owner.job, ")"),
                   " is writing checkpoints there; wait for it, end it, or name another directory"));
}

}  // namespace

FolderLock::FolderLock(std::string path, std::string content, double touch_seconds)
    : path_(std::move(path)), content_(std::move(content)) {
  toucher_ = std::jthread([path = path_, touch_seconds](const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock<std::mutex> lock(mutex);
    const std::chrono::duration<double> period(touch_seconds);
    while (
        !std::condition_variable_any().wait_for(lock, stop, period, [&] { return stop.stop_requested(); })) {
      utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
    }
  });
}

FolderLock::~FolderLock() {
  toucher_ = {};  // touches no more
  if (ContentOf(path_) == content_) unlink(path_.c_str());
}

absl::StatusOr<std::unique_ptr<FolderLock>> FolderLock::Take(const std::string& folder,
                                                             const FolderLockOptions& given) {
  FolderLockOptions options = given;
  if (options.host.empty()) options.host = base::HostName();
  const std::string path = folder + "/lock", content = OwnContent(options);
  for (int attempt = 0;; ++attempt) {
    const absl::Status linked = Link(path, content);
    if (linked.ok()) {
      return std::unique_ptr<FolderLock>(new FolderLock(path, content, options.touch_seconds));
    }
    if (!absl::IsAlreadyExists(linked)) return linked;
    const std::string found = ContentOf(path);
    const Owner owner = OwnerOf(found);
    if (attempt > 3) return InUse(path, owner);
    std::error_code ignored;
    if (found.empty() && !std::filesystem::exists(path, ignored)) continue;  // released just now
    if (!IsLeft(path, owner, options)) return InUse(path, owner);
    RemoveLeft(folder, path, found);
  }
}

}  // namespace plait::training
