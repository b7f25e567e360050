#include <cstddef>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "tools/device/device.h"

namespace plait::device {
namespace {

constexpr std::pair<absl::string_view, DeviceKind> kKinds[] = {
    {"auto", DeviceKind::kAuto}, {"cpu", DeviceKind::kCpu}, {"cuda", DeviceKind::kCuda}};

absl::string_view NameOf(DeviceKind kind) {
  for (const auto& [name, value] : kKinds) {
    if (value == kind) return name;
  }
  return "?";
}

absl::Status CheckRequests(const std::vector<RankFacts>& ranks) {
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    const DeviceRequest& mine = ranks[rank].request;
    const DeviceRequest& first = ranks[0].request;
    if (mine.kind == first.kind && mine.threads == first.threads) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " was started with --device=", NameOf(mine.kind),
                     " --threads=", mine.threads, ", rank 0 with --device=", NameOf(first.kind),
                     " --threads=", first.threads, "; start all ranks with the same flags"));
  }
  return absl::OkStatus();
}

// The physical GPU behind index `gpu` of a process: an element of CUDA_VISIBLE_DEVICES, else the index.
std::string PhysicalGpu(const RankFacts& facts, int gpu) {
  if (facts.visible.empty()) return absl::StrCat(gpu);
  const std::vector<std::string> listed = absl::StrSplit(facts.visible, ',');
  return gpu < static_cast<int>(listed.size()) ? listed[static_cast<std::size_t>(gpu)] : absl::StrCat(gpu);
}

// The same for processes with the same GPUs in the same order, and for no others of a node.
std::string GpuList(const RankFacts& facts) {
  return facts.ids.empty() ? facts.visible : absl::StrJoin(facts.ids, ",");
}
std::string GpuId(const RankFacts& facts, int gpu) {
  const auto index = static_cast<std::size_t>(gpu);
  return index < facts.ids.size() ? facts.ids[index] : PhysicalGpu(facts, gpu);
}

std::string RanksOnNode(const std::vector<RankFacts>& ranks, const std::string& node) {
  int count = 0;
  for (const RankFacts& facts : ranks) count += facts.node == node;
  return absl::StrCat(count, count == 1 ? " rank" : " ranks");
}

// Gives the i-th rank of a node the i-th GPU. Ranks with different lists of visible GPUs count separately: a
// launcher that gives each rank a list of its own has assigned them. Returns what stands in the way; empty:
// nothing.
std::string AssignGpus(const std::vector<RankFacts>& ranks, std::vector<DevicePlan>& plans) {
  std::map<std::pair<std::string, std::string>, int> taken;            // by node and list
  std::map<std::pair<std::string, std::string>, std::size_t> rank_of;  // by node and physical GPU
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankFacts& facts = ranks[rank];
    const int gpu = taken[{facts.node, GpuList(facts)}]++;
    if (facts.gpus == 0) {
      return absl::StrCat("LibTorch finds no GPU on ", facts.host, " (rank ", rank, ")",
                          facts.obstacle.empty() ? "" : ": ", facts.obstacle);
    }
    if (gpu >= facts.gpus) {
      return absl::StrCat(facts.host, " has ", RanksOnNode(ranks, facts.node), " but only ", facts.gpus,
                          facts.gpus == 1 ? " visible GPU" : " visible GPUs");
    }
    const auto [other, is_new] = rank_of.emplace(std::pair(facts.node, GpuId(facts, gpu)), rank);
    if (!is_new) {
      return absl::StrCat("ranks ", other->second, " and ", rank, " on ", facts.host, " would share GPU ",
                          PhysicalGpu(facts, gpu), " (CUDA_VISIBLE_DEVICES of rank ", rank, ": ",
                          facts.visible, ")");
    }
    plans[rank].gpu = gpu;
  }
  return "";
}

absl::Status ChooseDevices(const std::vector<RankFacts>& ranks, std::vector<DevicePlan>& plans) {
  const DeviceKind kind = ranks[0].request.kind;
  if (kind == DeviceKind::kCpu) return absl::OkStatus();
  const std::string obstacle = AssignGpus(ranks, plans);
  if (obstacle.empty()) return absl::OkStatus();
  if (kind == DeviceKind::kCuda) {
    return absl::FailedPreconditionError(absl::StrCat(
        "--device=cuda: ", obstacle,
        "; start at most one rank per GPU, check drivers and CUDA_VISIBLE_DEVICES with doctor, or "
        "use --device=cpu"));
  }
  bool any = false;
  for (const RankFacts& facts : ranks) any = any || facts.gpus > 0 || !facts.obstacle.empty();
  for (DevicePlan& plan : plans) {
    plan.gpu = -1;
    if (any)
      plan.warning = absl::StrCat("GPUs are not used: ", obstacle, "; start one rank per GPU to use them");
  }
  return absl::OkStatus();
}

int ThreadsOf(const std::vector<RankFacts>& ranks, const RankFacts& facts) {
  if (facts.request.threads > 0) return facts.request.threads;
  if (facts.omp_threads > 0) return facts.omp_threads;
  int sharing = 0;
  for (const RankFacts& other : ranks) sharing += other.node == facts.node;
  return sharing > 1 ? 1 : facts.cores;
}

}  // namespace

absl::StatusOr<DeviceKind> ParseDeviceKind(absl::string_view text) {
  for (const auto& [name, kind] : kKinds) {
    if (text == name) return kind;
  }
  return absl::InvalidArgumentError(absl::StrCat("--device=", text, ": expected auto, cpu or cuda"));
}

absl::StatusOr<std::vector<DevicePlan>> PlanDevices(const std::vector<RankFacts>& ranks) {
  PLAIT_RETURN_IF_ERROR(CheckRequests(ranks));
  std::vector<DevicePlan> plans(ranks.size());
  PLAIT_RETURN_IF_ERROR(ChooseDevices(ranks, plans));
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) plans[rank].threads = ThreadsOf(ranks, ranks[rank]);
  return plans;
}

}  // namespace plait::device
