#include "tools/device/device.h"

#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/processors.h"
#include "base/status_macros.h"
#include "comm/gathered_text.h"
#include "comm/launch/job.h"
#include "tools/device/cuda_library.h"

namespace plait::device {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// OMP_NUM_THREADS may have a number per nesting level: "4,2".
int OmpThreads() {
  const std::vector<std::string> levels = absl::StrSplit(Variable("OMP_NUM_THREADS"), ',');
  int threads = 0;
  return absl::SimpleAtoi(levels[0], &threads) ? std::max(threads, 0) : 0;
}

constexpr char kSeparator[] = "\n", kComma[] = ",";

std::string Serialize(const RankFacts& f) {
  return absl::StrJoin(
      {std::to_string(static_cast<int>(f.request.kind)), std::to_string(f.request.threads), f.host, f.node,
       std::to_string(f.gpus), f.visible, std::to_string(f.cores), std::to_string(f.omp_threads),
       absl::StrReplaceAll(f.obstacle, {{kSeparator, " "}}), absl::StrJoin(f.ids, kComma)},
      kSeparator);
}

RankFacts Parse(const std::string& text) {
  const std::vector<std::string> fields = absl::StrSplit(text, kSeparator);
  const auto number = [&](std::size_t field) { return std::stoi(fields.at(field)); };
  return {.request = {.kind = static_cast<DeviceKind>(number(0)), .threads = number(1)},
          .host = fields[2],
          .node = fields[3],
          .gpus = number(4),
          .obstacle = fields.at(8),
          .visible = fields[5],
          .ids = absl::StrSplit(fields.at(9), kComma, absl::SkipEmpty()),
          .cores = number(6),
          .omp_threads = number(7)};
}

}  // namespace

RankFacts DetectRankFacts(const DeviceRequest& request) {
  const comm::JobSources sources = comm::ProcessJobSources();
  const bool may_use_gpus = request.kind != DeviceKind::kCpu;
  const absl::Status loaded = may_use_gpus ? LoadCudaLibraryIfUsable() : absl::OkStatus();
  const int gpus = may_use_gpus && loaded.ok() ? at::detail::getCUDAHooks().deviceCount() : 0;
  return {.request = request,
          .host = sources.host,
          .node = sources.host + " " + sources.boot_id,
          .gpus = gpus,
          .obstacle = std::string(loaded.message()),
          .visible = Variable("CUDA_VISIBLE_DEVICES"),
          .ids = GpuIds(gpus),
          .cores = base::UsableProcessors(),
          .omp_threads = OmpThreads()};
}

absl::StatusOr<DevicePlan> AgreeOnDevice(const RankFacts& mine, const comm::Communicator& world) {
  std::vector<RankFacts> ranks;
  for (const std::string& text : comm::GatherText(world, Serialize(mine))) ranks.push_back(Parse(text));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<DevicePlan> plans, PlanDevices(ranks));
  return plans[static_cast<std::size_t>(world.rank())];
}

absl::StatusOr<DevicePlan> SelectDevice(const DeviceRequest& request, const comm::Communicator& world) {
  PLAIT_ASSIGN_OR_RETURN(const DevicePlan plan, AgreeOnDevice(DetectRankFacts(request), world));
  at::set_num_threads(plan.threads);
  if (plan.cuda()) c10::impl::VirtualGuardImpl(c10::kCUDA).setDevice(plan.device());
  return plan;
}

double SecondsWhenDone(c10::Device device) {
  if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace plait::device
