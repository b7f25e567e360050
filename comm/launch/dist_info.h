// What a run prints about itself before it starts: rank, host, machine, transport.
//
//   comm::CompleteJob(world, comm::BuildFingerprint(revision), &job);
//   const comm::DeviceChoice device = comm::CpuDevice(job);
//   if (world.rank() == 0) {
//     log.Info("\n" + comm::DistInfoBlock(job, device, comm::LocaleIsUtf8()));
//     log.Info(comm::DeviceLine(job, device, "DDP"));
//   }
//   log.Info(comm::RankLine(job.host, mesh));
//
// prints "[dist_info]:" with 18 lines "  • DEVICE=cpu", ..., "  • LAUNCH_CMD=mpirun -n 4 train", then
// "[0/4] Using device='cpu' with backend='DDP' + 'mpi' for distributed training." (rank/size) and per rank
// "['node7'][ 3/15] [pp:0/1][dp:1/3][tp:1/1]" (index/last index). Local.
#ifndef PLAIT_COMM_LAUNCH_DIST_INFO_H_
#define PLAIT_COMM_LAUNCH_DIST_INFO_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "comm/device_mesh.h"
#include "comm/launch/job.h"

namespace plait::comm {

// The device and the transport of this rank.
struct DeviceChoice {
  std::string kind = "cpu";       // "cpu", "cuda"
  std::string id = "cpu";         // "cpu", "cuda:0"
  std::string transport = "mpi";  // "mpi", "nccl"; "self" for a world of one rank
  int devices_in_use = 0;         // accelerators that all ranks of the job use together
};
DeviceChoice CpuDevice(const Job& job);
// Device local_rank modulo the number of devices of the host.
DeviceChoice CudaDevice(const Job& job, absl::string_view transport);

// Keys and values in this order: DEVICE, DEVICE_ID, DISTRIBUTED_BACKEND, GPUS_PER_NODE, HOSTS, HOSTFILE,
// HOSTNAME, LOCAL_RANK, MACHINE, NUM_NODES, NGPUS, NGPUS_AVAILABLE, NODE_ID, RANK, SCHEDULER,
// WORLD_SIZE_TOTAL, WORLD_SIZE_IN_USE, LAUNCH_CMD. GPUS_PER_NODE and NGPUS count accelerators in use,
// NGPUS_AVAILABLE all that the hosts have. WORLD_SIZE_TOTAL is the number of ranks that the allocation has slots for,
// but at least WORLD_SIZE_IN_USE. HOSTFILE and LAUNCH_CMD are empty if there is none. HOSTS shows at most 64 hosts.
std::vector<std::pair<std::string, std::string>> DistInfo(const Job& job, const DeviceChoice& device);

// "[title]:" and a line "  • KEY=value" for each entry; "*" for the bullet without `utf8`. Ends in a newline.
std::string BulletBlock(absl::string_view title,
                        const std::vector<std::pair<std::string, std::string>>& entries, bool utf8);
std::string DistInfoBlock(const Job& job, const DeviceChoice& device, bool utf8);

// "[0/4] Using device='cpu' with backend='DDP' + 'mpi' for distributed training."
std::string DeviceLine(const Job& job, const DeviceChoice& device, absl::string_view strategy);

// "['node7'][ 3/15] [pp:0/1][dp:1/3][tp:1/1]"; indexes are padded to the width of the last index.
std::string RankLine(absl::string_view host, const DeviceMesh& mesh);
// "[device='cpu'][rank=2/3][local_rank=2/3][node=0/0]": each with its last index.
std::string RankLine(const Job& job, const DeviceChoice& device);

// Whether output may contain non-ASCII characters: the first of LC_ALL, LC_CTYPE and LANG that is set names UTF-8.
bool LocaleIsUtf8(const Lookup& lookup = ProcessEnvironment());

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_DIST_INFO_H_
