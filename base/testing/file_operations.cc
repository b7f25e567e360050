#include "base/testing/file_operations.h"

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace plait::base::testing {
namespace {

namespace fs = std::filesystem;
using Kind = FileOperation::Kind;

constexpr int kMarks = -1;       // not a valid descriptor
constexpr int kCallStop = 0x80;  // PTRACE_O_TRACESYSGOOD

// A system call and its arguments.
struct Call {
  pid_t thread = 0;
  std::uint64_t number = 0;
  std::uint64_t arguments[6] = {};
  int operations_before = 0;

  int File(int i) const { return static_cast<int>(arguments[i]); }
};

// A string of at most 4096 bytes in another process's memory.
std::string TextAt(pid_t process, std::uint64_t address) {
  std::string text;
  for (char next = 1; next != 0 && text.size() < 4096;) {
    iovec to{&next, 1}, from{reinterpret_cast<void*>(address + text.size()), 1};
    PLAIT_CHECK(process_vm_readv(process, &to, 1, &from, 1, 0) == 1) << "memory of the traced process";
    if (next != 0) text.push_back(next);
  }
  return text;
}

std::string ReadLink(const std::string& link) {
  std::error_code ignored;
  return fs::read_symlink(link, ignored).string();
}

class Recorder {
 public:
  explicit Recorder(const std::string& folder) : folder_(fs::canonical(folder).string()) {}

  // Runs the stopped child to its end; returns its wait status.
  int Follow(pid_t child);
  std::vector<FileOperation> Take() { return std::move(operations_); }

 private:
  void TakeStop(pid_t thread);
  void Add(const Call& call);
  void AddOfNames(const Call& call);
  void AddOfFile(const Call& call, int file);
  void AddOpened(const Call& call, int at, std::uint64_t path, int flags);
  void AddNamed(Kind kind, const std::optional<std::string>& path);
  void AddNamed(Kind kind, const std::optional<std::string>& path, const std::optional<std::string>& to);
  std::optional<std::string> Below(const fs::path& path) const;
  std::optional<std::string> PathAt(const Call& call, int at, std::uint64_t text) const;
  std::string FileLink(const Call& call, int file) const {
    return absl::StrCat("/proc/", call.thread, "/fd/", file);
  }

  const std::string folder_;
  int signal_ = 0;  // delivered to the thread that is resumed next
  std::map<pid_t, Call> entered_;
  std::vector<FileOperation> operations_;
};

std::optional<std::string> Recorder::Below(const fs::path& path) const {
  const std::string text = path.string();
  if (text == folder_) return "";
  if (!absl::StartsWith(text, folder_ + "/")) return std::nullopt;
  return text.substr(folder_.size() + 1);
}

std::optional<std::string> Recorder::PathAt(const Call& call, int at, std::uint64_t text) const {
  const std::string link = at == AT_FDCWD ? absl::StrCat("/proc/", call.thread, "/cwd") : FileLink(call, at);
  const fs::path path = (fs::path(ReadLink(link)) / TextAt(call.thread, text)).lexically_normal();
  const fs::path named = path.has_filename() ? path : path.parent_path();  // without the slash at its end
  return Below(fs::weakly_canonical(named.parent_path()) / named.filename());
}

void Recorder::AddNamed(Kind kind, const std::optional<std::string>& path) {
  if (path) operations_.push_back({.kind = kind, .path = *path});
}

void Recorder::AddNamed(Kind kind, const std::optional<std::string>& path,
                        const std::optional<std::string>& to) {
  PLAIT_CHECK(path.has_value() == to.has_value()) << "a name moved into or out of " << folder_;
  if (path) operations_.push_back({.kind = kind, .path = *path, .to = *to});
}

void Recorder::AddOpened(const Call& call, int at, std::uint64_t path, int flags) {
  const std::optional<std::string> named = PathAt(call, at, path);
  if (!named || (flags & (O_CREAT | O_TRUNC)) == 0) return;
  if ((flags & O_CREAT) != 0) AddNamed(Kind::kMakeFile, named);
  if ((flags & O_TRUNC) != 0) operations_.push_back({.kind = Kind::kContent, .path = *named});
}

// Calls that change a file through a descriptor.
void Recorder::AddOfFile(const Call& call, int file) {
  const std::string link = FileLink(call, file);
  const std::optional<std::string> path = Below(ReadLink(link));
  if (!path || absl::EndsWith(*path, " (deleted)")) return;
  std::ifstream contents(link, std::ios::binary);
  operations_.push_back({.kind = Kind::kContent,
                         .path = *path,
                         .content = std::string(std::istreambuf_iterator<char>(contents), {})});
}

void Recorder::AddOfNames(const Call& call) {
  const auto path = [&](int at, int text) { return PathAt(call, at, call.arguments[text]); };
  switch (call.number) {
    case SYS_mkdir:
      return AddNamed(Kind::kMakeFolder, path(AT_FDCWD, 0));
    case SYS_mkdirat:
      return AddNamed(Kind::kMakeFolder, path(call.File(0), 1));
    case SYS_unlink:
    case SYS_rmdir:
      return AddNamed(Kind::kRemove, path(AT_FDCWD, 0));
    case SYS_unlinkat:
      return AddNamed(Kind::kRemove, path(call.File(0), 1));
    case SYS_link:
      return AddNamed(Kind::kLink, path(AT_FDCWD, 0), path(AT_FDCWD, 1));
    case SYS_linkat:
      return AddNamed(Kind::kLink, path(call.File(0), 1), path(call.File(2), 3));
    case SYS_rename:
      return AddNamed(Kind::kRename, path(AT_FDCWD, 0), path(AT_FDCWD, 1));
    case SYS_renameat:
      return AddNamed(Kind::kRename, path(call.File(0), 1), path(call.File(2), 3));
    case SYS_renameat2:
      return AddNamed((call.arguments[4] & RENAME_EXCHANGE) != 0 ? Kind::kExchange : Kind::kRename,
                      path(call.File(0), 1), path(call.File(2), 3));
    default:
      return;
  }
}

void Recorder::Add(const Call& call) {
  switch (call.number) {
    case SYS_open:
      return AddOpened(call, AT_FDCWD, call.arguments[0], call.File(1));
    case SYS_openat:
      return AddOpened(call, call.File(0), call.arguments[1], call.File(2));
    case SYS_creat:
      return AddOpened(call, AT_FDCWD, call.arguments[0], O_CREAT | O_TRUNC);
    case SYS_write:
    case SYS_pwrite64:
    case SYS_writev:
    case SYS_pwritev:
    case SYS_pwritev2:
    case SYS_ftruncate:
    case SYS_fallocate:
    case SYS_sendfile:
      return AddOfFile(call, call.File(0));
    case SYS_copy_file_range:
      return AddOfFile(call, call.File(2));
    case SYS_fsync:
    case SYS_fdatasync:
      if (const auto path = Below(ReadLink(FileLink(call, call.File(0))))) {
        operations_.push_back({.kind = Kind::kSync, .path = *path, .covers = call.operations_before});
      }
      return;
    default:
      return AddOfNames(call);
  }
}

// The thread is stopped before or after a system call.
void Recorder::TakeStop(pid_t thread) {
  __ptrace_syscall_info info{};
  PLAIT_CHECK(ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof(info), &info) > 0) << std::strerror(errno);
  Call& call = entered_[thread];
  if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
    call = {
        .thread = thread, .number = info.entry.nr, .operations_before = static_cast<int>(operations_.size())};
    std::copy(std::begin(info.entry.args), std::end(info.entry.args), call.arguments);
  } else if (call.number == SYS_write && call.File(0) == kMarks) {
    operations_.push_back({.kind = Kind::kMark, .mark = call.File(2)});
  } else if (info.op == PTRACE_SYSCALL_INFO_EXIT && info.exit.is_error == 0) {
    Add(call);
  }
}

int Recorder::Follow(pid_t child) {
  for (pid_t thread = child;;) {
    ptrace(PTRACE_SYSCALL, thread, nullptr, signal_);
    int status = 0;
    thread = waitpid(-1, &status, __WALL);
    PLAIT_CHECK(thread > 0) << std::strerror(errno);
    if (thread == child && !WIFSTOPPED(status)) return status;
    const int stopped_by = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
    if (stopped_by == (SIGTRAP | kCallStop)) TakeStop(thread);
    // A new thread or process is stopped by ptrace itself.
    const bool of_tracing =
        stopped_by == (SIGTRAP | kCallStop) || stopped_by == SIGTRAP || stopped_by == SIGSTOP;
    signal_ = of_tracing ? 0 : stopped_by;
  }
}

[[noreturn]] void RunTraced(const std::function<bool(const Mark&)>& body) {
  ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  raise(SIGSTOP);
  _exit(body(WriteMark) ? 0 : 1);
}

}  // namespace

// A write to an invalid descriptor: fails without effect, but is recorded.
void WriteMark(int number) { (void)!syscall(SYS_write, kMarks, nullptr, number); }

std::string Describe(const FileOperation& operation) {
  constexpr const char* kNames[] = {"make file", "make folder", "write", "link", "remove",
                                    "rename",    "exchange",    "sync",  "mark"};
  return absl::StrCat(kNames[static_cast<int>(operation.kind)], " \"", operation.path, "\"",
                      operation.to.empty() ? "" : absl::StrCat(" \"", operation.to, "\""));
}

std::vector<FileOperation> RecordFileOperations(const std::string& folder,
                                                const std::function<bool(const Mark&)>& body) {
  Recorder recorder(folder);
  const pid_t child = fork();
  if (child == 0) RunTraced(body);
  int status = 0;
  PLAIT_CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status)) << "no process to trace";
  PLAIT_CHECK(ptrace(PTRACE_SETOPTIONS, child, nullptr,
                     PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                         PTRACE_O_EXITKILL) == 0)
      << std::strerror(errno);
  status = recorder.Follow(child);
  PLAIT_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the traced process failed: " << status;
  return recorder.Take();
}

}  // namespace plait::base::testing
