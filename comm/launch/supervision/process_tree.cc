#include "comm/launch/supervision/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace plait::comm {
namespace {

void Redirect(int from, int to) {
  if (from >= 0) dup2(from, to);
}

// In the child, between fork and exec. Returns, with errno set, only on failure.
void BecomeProgram(char** words, const ForkOptions& options, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, options.signal_at_our_end);
  if (getppid() != parent) _exit(127);  // the parent ended before prctl
  Redirect(options.standard_input, 0);
  Redirect(options.standard_output, 1);
  Redirect(options.standard_error, 2);
  for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &options.mask, nullptr);
  execvp(words[0], words);
}

absl::Status CannotFork(const std::string& program, int error) {
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot start a process for ", program, ": ", std::strerror(error)));
}

absl::Status CannotStart(const std::string& program, int error) {
  const std::string message = absl::StrCat("cannot start ", program, ": ", std::strerror(error));
  return error == ENOENT ? absl::NotFoundError(message) : absl::FailedPreconditionError(message);
}

// The name in brackets may contain any character; the parent is the second field after it.
pid_t ParentOf(const char* pid) {
  char text[512];
  const int file = open(absl::StrCat("/proc/", pid, "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0) return 0;
  text[length] = '\0';
  const char* bracket = std::strrchr(text, ')');
  char state = 0;
  int parent = 0;
  if (bracket == nullptr || std::sscanf(bracket + 1, " %c %d", &state, &parent) != 2) return 0;
  return parent;
}

std::multimap<pid_t, pid_t> ChildrenByParent() {
  std::multimap<pid_t, pid_t> children;
  DIR* folder = opendir("/proc");
  if (folder == nullptr) return children;
  while (const dirent* entry = readdir(folder)) {
    int pid = 0;
    if (absl::SimpleAtoi(entry->d_name, &pid)) children.emplace(ParentOf(entry->d_name), pid);
  }
  closedir(folder);
  return children;
}

}  // namespace

absl::StatusOr<pid_t> StartProcess(const std::vector<std::string>& command, const ForkOptions& options) {
  std::vector<std::string> words = command;
  std::vector<char*> raw;
  for (std::string& word : words) raw.push_back(word.data());
  raw.push_back(nullptr);
  int report[2];  // closed by a successful exec
  if (pipe2(report, O_CLOEXEC) != 0) return absl::ResourceExhaustedError(std::strerror(errno));
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    BecomeProgram(raw.data(), options, parent);
    const int error = errno;
    [[maybe_unused]] const ssize_t written = write(report[1], &error, sizeof error);
    _exit(127);
  }
  int error = errno;
  close(report[1]);
  const ssize_t got = pid < 0 ? 0 : read(report[0], &error, sizeof error);
  close(report[0]);
  if (pid < 0) return CannotFork(command[0], error);
  if (got <= 0) return pid;
  waitpid(pid, nullptr, 0);
  return CannotStart(command[0], error);
}

sigset_t HandledSignals(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int signal : signals) {
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    const bool may_be_ignored = signal == SIGHUP || signal == SIGINT;
    if (!may_be_ignored || now.sa_handler != SIG_IGN) sigaddset(&set, signal);
  }
  return set;
}

void AdoptOrphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<pid_t> Descendants() {
  const std::multimap<pid_t, pid_t> children = ChildrenByParent();
  std::vector<pid_t> found = {getpid()};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [first, last] = children.equal_range(found[i]);
    for (auto child = first; child != last; ++child) found.push_back(child->second);
  }
  found.erase(found.begin());
  return found;
}

void KillDescendants(double seconds) {
  const double deadline = NowSeconds() + seconds;
  for (;;) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    const std::vector<pid_t> left = Descendants();
    if (left.empty() || NowSeconds() > deadline) return;
    for (const pid_t pid : left) kill(pid, SIGKILL);
    usleep(5000);
  }
}

double NowSeconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace plait::comm
