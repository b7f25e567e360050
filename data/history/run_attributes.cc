#include "data/history/run_attributes.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/host_name.h"
#include "base/text.h"

namespace plait::data {
namespace {

// The words of this process, which the kernel separates by NUL.
std::vector<std::string> OwnCommand() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!bytes.empty() && bytes.back() == '\0') bytes.pop_back();
  if (bytes.empty()) return {};
  return absl::StrSplit(bytes, '\0');
}

}  // namespace

std::map<std::string, std::string> RunAttributes(const RunFacts& facts) {
  std::error_code ignored;
  std::map<std::string, std::string> attributes = {
      {"program", facts.program},
      {"command", base::ShellCommand(OwnCommand())},
      {"host", base::HostName()},
      {"revision", facts.revision},
      {"seed", facts.seed},
      {"ranks", absl::StrCat(facts.ranks)},
      {"started", absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone())},
      {"folder", std::filesystem::current_path(ignored).string()},
      {"settings", facts.settings},
      {"data", facts.data},
      {"trace", facts.trace},
      {"scheduler", facts.scheduler},
      {"machine", facts.machine},
      {"launch_command", facts.launch_command}};
  for (auto it = attributes.begin(); it != attributes.end();) {
    it = it->second.empty() ? attributes.erase(it) : std::next(it);
  }
  return attributes;
}

}  // namespace plait::data
