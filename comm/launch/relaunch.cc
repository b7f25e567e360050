#include "comm/launch/relaunch.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace plait::comm {

std::vector<std::string> MpirunCommand(const RelaunchOptions& options, const std::string& program,
                                       const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {"mpirun"};
  if (options.as_root) command.push_back("--allow-run-as-root");
  // Its own limit is the number of physical cores. Ranks are not bound: two jobs would be bound to the same
  // cores.
  command.insert(command.end(), {"--oversubscribe", "--bind-to", "none", "-n", absl::StrCat(options.ranks)});
  if (options.set_one_thread) command.insert(command.end(), {"-x", "OMP_NUM_THREADS=1"});
  command.push_back(program);
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

absl::Status RelaunchOnRanks(int ranks, char** argv) {
  if (ranks < 1) return absl::InvalidArgumentError(absl::StrCat("cannot run on ", ranks, " ranks"));
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return absl::NotFoundError("/proc/self/exe: " + error.message());
  std::vector<std::string> arguments;
  for (char** argument = argv + 1; *argument != nullptr; ++argument) arguments.push_back(*argument);
  std::vector<std::string> command =
      MpirunCommand({.ranks = ranks,
                     .as_root = geteuid() == 0,
                     .set_one_thread = std::getenv("OMP_NUM_THREADS") == nullptr},
                    program, arguments);
  std::vector<char*> raw;
  for (std::string& word : command) raw.push_back(word.data());
  raw.push_back(nullptr);
  std::fflush(nullptr);
  execvp(raw[0], raw.data());
  return absl::NotFoundError(absl::StrCat("cannot start mpirun (", std::strerror(errno),
                                          "); install OpenMPI (openmpi-bin) or run on one rank"));
}

}  // namespace plait::comm
