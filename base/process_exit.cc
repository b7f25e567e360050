#include "base/process_exit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "base/terminal.h"

namespace plait::base {
namespace {

bool IsPipe(int file_descriptor) {
  struct stat about;
  return fstat(file_descriptor, &about) == 0 && (S_ISFIFO(about.st_mode) || S_ISSOCK(about.st_mode));
}

// False, with a line on standard error, if standard output was cut.
bool StandardOutputIsWhole(const std::string& program) {
  const bool flushed = std::fflush(stdout) == 0;
  const int error = errno;
  if ((flushed && std::ferror(stdout) == 0) || IsPipe(STDOUT_FILENO)) return true;
  // The reason is known only if it is this flush that failed.
  const std::string reason = flushed ? "" : std::string(": ") + std::strerror(error);
  WriteError(program + ": standard output cannot be written" + reason);
  return false;
}

// Closed ones would be taken by the next files that are opened, and what is printed would go there.
void OccupyStandardFiles() {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(file, F_GETFD) < 0 && errno == EBADF) open("/dev/null", O_RDONLY);
  }
}

// Functions of on_exit() and static destructors run in reverse order of their registration.
void End(int exit_code, void* program) {
  const bool is_whole = exit_code != 0 || StandardOutputIsWhole(*static_cast<std::string*>(program));
  if (is_whole && kExitRunsStaticDestructors) return;
  std::fflush(nullptr);
  _exit(is_whole ? exit_code : 1);  // exit() must not be called again
}

}  // namespace

int RunTool(const std::string& program, absl::FunctionRef<int()> body) {
  std::string why;
  try {
    return body();
  } catch (const std::bad_alloc&) {
    why = "out of memory (std::bad_alloc); choose smaller inputs, or raise the limit (ulimit -v)";
  } catch (const std::exception& error) {
    why = error.what();  // LibTorch's has a stack trace below its first line
  }
  std::fflush(stdout);
  WriteError(program + ": " + why.substr(0, why.find('\n')));
  return 1;
}

void PrepareExit(const std::string& program) {
  OccupyStandardFiles();
  // Never freed: it is used at the end.
  static auto* const name = new std::string(program);
  static const int registered = on_exit(End, name);
  static_cast<void>(registered);
}

}  // namespace plait::base
