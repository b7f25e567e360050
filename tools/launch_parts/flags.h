// The flags of launch.
#ifndef PLAIT_TOOLS_LAUNCH_PARTS_FLAGS_H_
#define PLAIT_TOOLS_LAUNCH_PARTS_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/flags.h"

namespace plait::launching {

struct Settings {
  int nproc = 0, nhosts = 0, ppn = 0;  // 0: not given
  std::string host_file = {};          // absolute, empty: the job's
  std::string bind = "auto";
  std::string starter = "auto";
  double idle_timeout_seconds = 0;  // 0: none
  double timeout_seconds = 0;
  double grace_seconds = 10;
  std::string log_folder = {};  // absolute, empty: none
  bool label = false;
  bool dry_run = false;
  std::vector<std::string> program = {};  // and its arguments
};

base::ToolUsage Usage();

// The settings from the parsed flags; `program` is what followed them.
Settings SettingsFromFlags(std::vector<std::string> program);

// "90", "90s", "1.5m", "2h", "none" (0) as seconds. INVALID_ARGUMENT with what was expected.
absl::StatusOr<double> ParseSeconds(const std::string& text);

}  // namespace plait::launching

#endif  // PLAIT_TOOLS_LAUNCH_PARTS_FLAGS_H_
