// --device and --threads: on which device each rank computes, and with how many threads.
//
//   ABSL_FLAG(std::string, device, "auto", ...);
//   ABSL_FLAG(int, threads, 0, ...);
//   PLAIT_ASSIGN_OR_RETURN(const DeviceKind kind, ParseDeviceKind(absl::GetFlag(FLAGS_device)));
//   PLAIT_ASSIGN_OR_RETURN(const DevicePlan plan,
//                          SelectDevice({.kind = kind, .threads = absl::GetFlag(FLAGS_threads)}, world));
//   model.to(plan.device());
//
// All ranks compute on the same kind of device, one rank per GPU. Results on CPU may depend on the number of
// threads in their last bits.
#ifndef PLAIT_TOOLS_DEVICE_DEVICE_H_
#define PLAIT_TOOLS_DEVICE_DEVICE_H_

#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "comm/communicator.h"

namespace plait::device {

enum class DeviceKind { kAuto, kCpu, kCuda };

// "auto", "cpu" or "cuda"; InvalidArgument for anything else.
absl::StatusOr<DeviceKind> ParseDeviceKind(absl::string_view text);

struct DeviceRequest {
  DeviceKind kind = DeviceKind::kAuto;
  int threads = 0;  // intra-op threads per rank; 0: DevicePlan::threads says how the default is found
};

// What a rank knows about itself and its node.
struct RankFacts {
  DeviceRequest request = {};
  std::string host;  // the node's name, for messages
  std::string node;  // differs between nodes, also between those of one name
  int gpus = 0;      // that LibTorch sees in this process, after CUDA_VISIBLE_DEVICES; 0 for kCpu, unasked
  std::string obstacle =
      "";                    // why LibTorch sees none, where that is known: its CUDA library cannot be loaded
  std::string visible = "";  // CUDA_VISIBLE_DEVICES; empty: not set
  // Of each GPU, the same in all processes of the node; empty: not known, `visible` tells them apart. Where a launcher hides
  // the GPUs of other ranks (Slurm's --gpus-per-task), CUDA_VISIBLE_DEVICES is 0 in every rank.
  std::vector<std::string> ids = {};
  int cores = 1;        // that this process may run on
  int omp_threads = 0;  // OMP_NUM_THREADS; 0: not set
};

struct DevicePlan {
  int gpu = -1;  // index among the GPUs that this process sees; -1: CPU
  // --threads, else OMP_NUM_THREADS, else 1 where several ranks share the node, else all cores.
  int threads = 1;
  // One line for the log: why auto has left GPUs unused; empty otherwise. The same on all ranks.
  std::string warning = "";

  bool cuda() const { return gpu >= 0; }
  c10::Device device() const {
    return cuda() ? c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(gpu)) : c10::Device(c10::kCPU);
  }
};

// Plans by rank. auto chooses CUDA if every rank has a GPU of its own, else CPU for all ranks. Errors are one line:
// FAILED_PRECONDITION for cuda where a rank has no GPU, or two ranks would share one; INVALID_ARGUMENT for
// ranks that were started with different flags. Local.
absl::StatusOr<std::vector<DevicePlan>> PlanDevices(const std::vector<RankFacts>& ranks);

// Of this process. Loads LibTorch's CUDA library where GPUs may be used (cuda_library.h), so call it before LibTorch is asked
// for devices or its generators are seeded. Local.
RankFacts DetectRankFacts(const DeviceRequest& request);

// Collective over `world`. Gathers the facts of all ranks and returns this rank's plan. Errors of PlanDevices, the same
// on all ranks.
absl::StatusOr<DevicePlan> AgreeOnDevice(const RankFacts& mine, const comm::Communicator& world);

// Collective over `world`. AgreeOnDevice with DetectRankFacts(request); then sets LibTorch's number of intra-op threads
// and, with CUDA, makes the plan's GPU the current device.
absl::StatusOr<DevicePlan> SelectDevice(const DeviceRequest& request, const comm::Communicator& world);

// Local. Synchronizes `device`, then returns seconds of the steady clock, so that a difference of two calls includes
// the device's work between them. On CPU only the clock.
double SecondsWhenDone(c10::Device device);

}  // namespace plait::device

#endif  // PLAIT_TOOLS_DEVICE_DEVICE_H_
