#include "data/plot/gnuplot.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/text.h"

extern char** environ;

namespace plait::data {
namespace {

constexpr auto kLongestRun = std::chrono::seconds(60);

// A file in memory.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("plot", MFD_CLOEXEC)) {}
  MemoryFile(MemoryFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  MemoryFile& operator=(MemoryFile&&) = delete;
  ~MemoryFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  int descriptor() const { return descriptor_; }

  bool Write(absl::string_view text) {
    while (!text.empty()) {
      const ssize_t written = write(descriptor_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    return lseek(descriptor_, 0, SEEK_SET) == 0;
  }

  std::string Contents() const {
    const off_t size = lseek(descriptor_, 0, SEEK_END);
    std::string text(size > 0 ? static_cast<std::size_t>(size) : 0, '\0');
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t got =
          pread(descriptor_, text.data() + done, text.size() - done, static_cast<off_t>(done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    text.resize(done);
    return text;
  }

 private:
  int descriptor_;
};

struct Files {
  MemoryFile script, messages;
  std::vector<MemoryFile> pages;
};

absl::Status NoMemoryFile() {
  return absl::ErrnoToStatus(errno, "plots: no file in memory can be made for gnuplot");
}

std::string Script(absl::Span<const GnuplotPage> pages, const Files& files) {
  std::string script = "set encoding utf8\n";
  for (std::size_t i = 0; i < pages.size(); ++i) {
    absl::StrAppend(&script, "reset\nset terminal ", pages[i].terminal, "\nset output '/dev/fd/",
                    files.pages[i].descriptor(), "'\n", pages[i].commands, "\nunset output\n");
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

absl::StatusOr<pid_t> Start(const std::string& program, const Files& files) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, files.script.descriptor(), 0);
  posix_spawn_file_actions_adddup2(&actions, files.messages.descriptor(), 1);
  posix_spawn_file_actions_adddup2(&actions, files.messages.descriptor(), 2);
  // Onto itself: the descriptor stays open in the new program.
  for (const MemoryFile& page : files.pages) {
    posix_spawn_file_actions_adddup2(&actions, page.descriptor(), page.descriptor());
  }
  std::string name = program, defaults = "-d";
  char* arguments[] = {name.data(), defaults.data(), nullptr};
  pid_t process = 0;
  const int error = posix_spawnp(&process, program.c_str(), &actions, nullptr, arguments, environ);
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
  Files files;
  if (files.script.descriptor() < 0 || files.messages.descriptor() < 0) return NoMemoryFile();
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (files.pages.emplace_back().descriptor() < 0) return NoMemoryFile();
  }
  if (!files.script.Write(Script(pages, files))) return NoMemoryFile();
  PLAIT_ASSIGN_OR_RETURN(const pid_t process, Start(program, files));
  PLAIT_ASSIGN_OR_RETURN(const int result, WaitFor(process));
  const std::string messages = files.messages.Contents();
  std::vector<std::string> drawn;
  for (const MemoryFile& page : files.pages) {
    drawn.push_back(page.Contents());
    if (result != 0 || drawn.back().empty()) {
      return absl::InternalError(absl::StrCat("no plots: ", program, " failed: ", FirstMessage(messages)));
    }
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
