#include "data/plot/gnuplot.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "data/hdf5/atomic_file.h"

extern char** environ;

namespace plait::data {
namespace {

namespace fs = std::filesystem;

constexpr auto kLongestRun = std::chrono::seconds(60);

// A temporary folder, removed with the files that were named in it. (Not by std::filesystem::remove_all:
// programs that link LibTorch and CUDA get one from libtorch.so that crashes.)
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(fs::temp_directory_path(error_).string() + "/plait-plot-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    for (const std::string& file : files_) ::unlink(file.c_str());
    if (!path_.empty()) ::rmdir(path_.c_str());
  }
  bool ok() const { return !path_.empty(); }
  std::string operator/(const std::string& name) const {
    return *files_.insert(absl::StrCat(path_, "/", name)).first;
  }

 private:
  std::error_code error_;
  std::string path_;
  mutable std::set<std::string> files_;
};

std::string Script(absl::Span<const GnuplotPage> pages, const TemporaryFolder& folder) {
  std::string script = "set encoding utf8\n";
  for (std::size_t i = 0; i < pages.size(); ++i) {
    absl::StrAppend(&script, "reset\nset terminal ", pages[i].terminal, "\nset output ",
                    Quoted(folder / absl::StrCat(i)), "\n", pages[i].commands, "\nunset output\n");
  }
  return script;
}

absl::Status CannotStart(const std::string& program, int error) {
  if (error == ENOENT || error == EACCES || error == ENOTDIR) {
    return absl::FailedPreconditionError(
        absl::StrCat("no plots: the program ", program,
                     " was not found; install it (Debian: apt-get install gnuplot-nox)"));
  }
  return absl::InternalError(
      absl::StrCat("no plots: ", program, " cannot be started: ", std::generic_category().message(error)));
}

absl::StatusOr<pid_t> Start(const std::string& program, const TemporaryFolder& folder) {
  const std::string messages = folder / "messages";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, messages.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  std::string name = program, defaults = "-d", script = folder / "script";
  char* arguments[] = {name.data(), defaults.data(), script.data(), nullptr};
  pid_t process = 0;
  // No blocked signals, so that ^C ends gnuplot too if this process handles signals in a separate thread.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  const int error = posix_spawnp(&process, program.c_str(), &actions, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return CannotStart(program, error);
  return process;
}

absl::StatusOr<int> WaitFor(pid_t process) {
  const auto give_up = std::chrono::steady_clock::now() + kLongestRun;
  int result = 0;
  for (;;) {
    const pid_t ended = waitpid(process, &result, WNOHANG);
    if (ended == process) return result;
    if (ended < 0 && errno == ECHILD) return 0;  // SIGCHLD is ignored: the pictures tell whether it failed
    if (ended < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, "no plots: waiting for gnuplot");
    if (std::chrono::steady_clock::now() > give_up) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  kill(process, SIGKILL);
  waitpid(process, &result, 0);
  return absl::DeadlineExceededError("no plots: gnuplot did not finish within a minute");
}

// gnuplot quotes the line, points at the place and tells line number and error last.
std::string FirstMessage(const std::string& messages) {
  for (const absl::string_view line : absl::StrSplit(messages, '\n')) {
    const std::size_t at = line.find("line ");
    if (at != absl::string_view::npos && !absl::StrContains(line, "warning:")) {
      return std::string(line.substr(at));
    }
  }
  return messages.substr(0, messages.find('\n'));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> RunGnuplot(absl::Span<const GnuplotPage> pages,
                                                    const std::string& program) {
  const TemporaryFolder folder;
  if (!folder.ok()) return absl::ErrnoToStatus(errno, "no plots: no temporary folder can be made");
  PLAIT_RETURN_IF_ERROR(WriteWholeFile(folder / "script", Script(pages, folder)));
  PLAIT_ASSIGN_OR_RETURN(const pid_t process, Start(program, folder));
  PLAIT_ASSIGN_OR_RETURN(const int result, WaitFor(process));
  std::vector<std::string> drawn;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const absl::StatusOr<std::string> page = ReadWholeFile(folder / absl::StrCat(i));
    if (result != 0 || !page.ok() || page->empty()) {
      const std::string messages = ReadWholeFile(folder / "messages").value_or("");
      return absl::InternalError(absl::StrCat("no plots: ", program, " failed: ", FirstMessage(messages)));
    }
    drawn.push_back(*page);
  }
  return drawn;
}

std::string Quoted(absl::string_view text) {
  std::string rest = base::Printable(text);
  // gnuplot takes a doubled quote for one quote, except at the beginning.
  const std::string leading = rest.substr(0, rest.find_first_not_of('\''));
  rest = absl::StrReplaceAll(rest.substr(leading.size()), {{"'", "''"}});
  return absl::StrCat(leading.empty() ? "" : absl::StrCat("\"", leading, "\" . "), "'", rest, "'");
}

}  // namespace plait::data
