#include "base/standard_output.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/terminal.h"

namespace plait::base {
namespace {

bool IsPipe(int file_descriptor) {
  struct stat about;
  return fstat(file_descriptor, &about) == 0 && (S_ISFIFO(about.st_mode) || S_ISSOCK(about.st_mode));
}

void CheckStandardOutput(int exit_code, void* program) {
  if (exit_code != 0) return;
  const bool flushed = std::fflush(stdout) == 0;
  const int error = errno;
  if ((flushed && std::ferror(stdout) == 0) || IsPipe(STDOUT_FILENO)) return;
  // The reason is known only if it is this flush that failed.
  const std::string reason = flushed ? "" : std::string(": ") + std::strerror(error);
  WriteError(*static_cast<std::string*>(program) + ": standard output cannot be written" + reason);
  std::fflush(nullptr);
  _exit(1);  // exit() must not be called again
}

}  // namespace

void CheckStandardOutputAtExit(const std::string& program) {
  // Never freed: it is used after static objects are destroyed.
  static auto* const name = new std::string(program);
  static const int registered = on_exit(CheckStandardOutput, name);
  static_cast<void>(registered);
}

}  // namespace plait::base
