#include "comm/launch/launch_ancestor.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/text.h"

namespace plait::comm {
namespace {

enum class Kind { kOther, kLauncher, kDaemon };

constexpr absl::string_view kLaunchers[] = {
    "mpirun",       "mpiexec",        "orterun",       "prterun",         "mpiexec.hydra",
    "mpirun.mpich", "mpirun.openmpi", "mpiexec.mpich", "mpiexec.openmpi", "srun",
    "torchrun",     "aprun",          "jsrun"};
constexpr absl::string_view kDaemons[] = {"hydra_pmi_proxy", "orted", "prted", "palsd", "slurmstepd"};

absl::string_view BaseName(absl::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

// A script's first word is its interpreter: "python3 /usr/bin/torchrun ...".
Kind KindOf(const std::vector<std::string>& command) {
  for (std::size_t i = 0; i < std::min<std::size_t>(2, command.size()); ++i) {
    const absl::string_view name = BaseName(command[i]);
    const bool script = i == 0 || absl::string_view(command[i - 1]).find("python") != absl::string_view::npos;
    if (script && std::find(std::begin(kLaunchers), std::end(kLaunchers), name) != std::end(kLaunchers)) {
      return Kind::kLauncher;
    }
    if (i == 0 && std::find(std::begin(kDaemons), std::end(kDaemons), name) != std::end(kDaemons)) {
      return Kind::kDaemon;
    }
  }
  return Kind::kOther;
}

// Field 4 of /proc/PID/stat; the name before it, in brackets, may contain any character.
int ParentOf(int process) {
  std::ifstream file(absl::StrCat("/proc/", process, "/stat"));
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::size_t bracket = text.rfind(')');
  if (bracket == text.npos) return 0;
  std::istringstream fields(text.substr(bracket + 1));
  std::string state;
  int parent = 0;
  fields >> state >> parent;
  return parent;
}

std::vector<std::string> CommandOf(int process) {
  std::ifstream file(absl::StrCat("/proc/", process, "/cmdline"), std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!text.empty() && text.back() == '\0') text.pop_back();
  if (text.empty()) return {};
  return absl::StrSplit(text, '\0');
}

}  // namespace

std::string CommandOfLauncher(const std::vector<std::vector<std::string>>& command_lines) {
  const std::vector<std::string>* found = nullptr;
  for (const std::vector<std::string>& command : command_lines) {
    const Kind kind = KindOf(command);
    if (kind == Kind::kOther && found != nullptr) break;
    if (kind == Kind::kLauncher) found = &command;
  }
  if (found == nullptr) return "";
  return base::ShellCommand(*found);
}

std::vector<std::vector<std::string>> AncestorCommands(int depth) {
  std::vector<std::vector<std::string>> commands;
  for (int process = getppid(); process > 1 && depth > 0; --depth, process = ParentOf(process)) {
    commands.push_back(CommandOf(process));
  }
  return commands;
}

}  // namespace plait::comm
