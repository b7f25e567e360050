#include "comm/launch/dist_info.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace plait::comm {
namespace {

constexpr std::size_t kMostHosts = 64;

// "['a', 'b']"
std::string HostList(const Job& job) {
  std::string text = "[";
  const std::size_t shown = std::min(kMostHosts, job.hosts.size());
  for (std::size_t i = 0; i < shown; ++i)
    absl::StrAppend(&text, i == 0 ? "'" : ", '", job.hosts[i].host, "'");
  if (shown < job.hosts.size()) absl::StrAppend(&text, ", and ", job.hosts.size() - shown, " more");
  return absl::StrCat(text, "]");
}

std::string OfLast(int index, int size) { return absl::StrCat(index, "/", size - 1); }

}  // namespace

DeviceChoice CpuDevice(const Job& job) {
  return {.kind = "cpu", .id = "cpu", .transport = job.size > 1 ? "mpi" : "self", .devices_in_use = 0};
}

DeviceChoice CudaDevice(const Job& job, absl::string_view transport) {
  int in_use = 0;
  for (const HostSlots& host : job.hosts) in_use += std::min(host.slots, job.devices_per_node);
  const int index = job.devices_per_node > 0 ? job.local_rank % job.devices_per_node : 0;
  return {.kind = "cuda",
          .id = absl::StrCat("cuda:", index),
          .transport = std::string(transport),
          .devices_in_use = in_use};
}

std::vector<std::pair<std::string, std::string>> DistInfo(const Job& job, const DeviceChoice& device) {
  const int used_per_node = device.devices_in_use > 0 ? std::min(job.local_size, job.devices_per_node) : 0;
  return {{"DEVICE", device.kind},
          {"DEVICE_ID", device.id},
          {"DISTRIBUTED_BACKEND", device.transport},
          {"GPUS_PER_NODE", absl::StrCat(used_per_node)},
          {"HOSTS", HostList(job)},
          {"HOSTFILE", job.host_file},
          {"HOSTNAME", job.host},
          {"LOCAL_RANK", absl::StrCat(job.local_rank)},
          {"MACHINE", job.machine},
          {"NUM_NODES", absl::StrCat(job.nodes())},
          {"NGPUS", absl::StrCat(device.devices_in_use)},
          {"NGPUS_AVAILABLE", absl::StrCat(job.devices_per_node * job.nodes())},
          {"NODE_ID", absl::StrCat(job.node_id)},
          {"RANK", absl::StrCat(job.rank)},
          {"SCHEDULER", NameOf(job.scheduler)},
          {"WORLD_SIZE_TOTAL", absl::StrCat(std::max(job.slots, job.size))},
          {"WORLD_SIZE_IN_USE", absl::StrCat(job.size)},
          {"LAUNCH_CMD", job.launch_command}};
}

std::string BulletBlock(absl::string_view title,
                        const std::vector<std::pair<std::string, std::string>>& entries, bool utf8) {
  std::string text = absl::StrCat("[", title, "]:\n");
  for (const auto& [key, value] : entries)
    absl::StrAppend(&text, utf8 ? "  • " : "  * ", key, "=", value, "\n");
  return text;
}

std::string DistInfoBlock(const Job& job, const DeviceChoice& device, bool utf8) {
  return BulletBlock("dist_info", DistInfo(job, device), utf8);
}

std::string DeviceLine(const Job& job, const DeviceChoice& device, absl::string_view strategy) {
  return absl::StrCat("[", job.rank, "/", job.size, "] Using device='", device.kind, "' with backend='",
                      strategy, "' + '", device.transport, "' for distributed training.");
}

std::string RankLine(absl::string_view host, const DeviceMesh& mesh) {
  return absl::StrCat("['", host, "']", mesh.Describe());
}

std::string RankLine(const Job& job, const DeviceChoice& device) {
  return absl::StrCat("[device='", device.kind, "'][rank=", OfLast(job.rank, job.size),
                      "][local_rank=", OfLast(job.local_rank, job.local_size),
                      "][node=", OfLast(job.node_id, job.nodes()), "]");
}

bool LocaleIsUtf8(const Lookup& lookup) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = lookup(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string lower = absl::AsciiStrToLower(value);
    return absl::StrContains(lower, "utf-8") || absl::StrContains(lower, "utf8");
  }
  return false;
}

}  // namespace plait::comm
