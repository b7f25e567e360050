// The inputs of DetectJob for this process.

#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/ascii.h"
#include "base/host_name.h"
#include "comm/launch/job.h"
#include "comm/launch/launch_ancestor.h"

namespace plait::comm {
namespace {

// mpirun is the parent of its ranks; Hydra's and torchrun's stand one or two further up.
constexpr int kAncestors = 4;

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

// /dev/nvidia0, /dev/nvidia1, ...; beside them are nvidiactl and nvidia-uvm.
int CountDevices() {
  int devices = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", error)) {
    const std::string name = entry.path().filename().string();
    if (name.size() > 6 && name.compare(0, 6, "nvidia") == 0 && absl::ascii_isdigit(name[6])) ++devices;
  }
  return devices;
}

}  // namespace

JobSources ProcessJobSources() {
  return {.lookup = ProcessEnvironment(),
          .host = base::HostName(),
          .boot_id = BootId(),
          .devices = CountDevices(),
          .read_host_file = ReadHostFile,
          .ancestors = AncestorCommands(kAncestors)};
}

}  // namespace plait::comm
