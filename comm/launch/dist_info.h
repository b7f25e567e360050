// What a run prints about itself before it starts: the place of this rank, the machine, the transport.
//
//   comm::CompleteJob(world, revision, &job);
//   const comm::DeviceChoice device = comm::CpuDevice(job);
//   if (world.rank() == 0) {
//     log.Info("\n" + comm::DistInfoBlock(job, device, comm::LocaleIsUtf8()));
//     log.Info(comm::DeviceLine(job, device, "DDP"));
//   }
//   log.Info(comm::RankLine(job.host, mesh));
//
// prints "[dist_info]:" with 18 lines "  • DEVICE=cpu", ..., "  • LAUNCH_CMD=mpirun -n 4 train", then
// "[0/4] Using device='cpu' with backend='DDP' + 'mpi' for distributed training." and per rank
// "['node7'][ 3/7] [pp:0/1][dp:1/3][tp:1/1]": indexes, each with the last index. Local.
#ifndef PLAIT_COMM_LAUNCH_DIST_INFO_H_
#define PLAIT_COMM_LAUNCH_DIST_INFO_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "comm/device_mesh.h"
#include "comm/launch/job.h"

namespace plait::comm {

// Where this rank computes and how it talks.
struct DeviceChoice {
  std::string kind = "cpu";       // "cpu", "cuda"
  std::string id = "cpu";         // "cpu", "cuda:0"
  std::string transport = "mpi";  // "mpi", "nccl"; "self" for a rank without others
  int devices_in_use = 0;         // accelerators that the job's ranks use together
};
DeviceChoice CpuDevice(const Job& job);
// One device for each rank of a host, by local rank.
DeviceChoice CudaDevice(const Job& job, absl::string_view transport);

// Keys and values in their order: DEVICE, DEVICE_ID, DISTRIBUTED_BACKEND, GPUS_PER_NODE, HOSTS, HOSTFILE,
// HOSTNAME, LOCAL_RANK, MACHINE, NUM_NODES, NGPUS, NGPUS_AVAILABLE, NODE_ID, RANK, SCHEDULER,
// WORLD_SIZE_TOTAL, WORLD_SIZE_IN_USE, LAUNCH_CMD. GPUS_PER_NODE and NGPUS count accelerators that are used,
// NGPUS_AVAILABLE those that the hosts have. WORLD_SIZE_TOTAL counts the ranks that the allocation has room
// for. HOSTFILE and LAUNCH_CMD are empty where there is none. Long lists of hosts are cut.
std::vector<std::pair<std::string, std::string>> DistInfo(const Job& job, const DeviceChoice& device);

// "[title]:" and a line "  • KEY=value" for each entry; "*" for the bullet without `utf8`. Ends in a newline.
std::string BulletBlock(absl::string_view title,
                        const std::vector<std::pair<std::string, std::string>>& entries, bool utf8);
std::string DistInfoBlock(const Job& job, const DeviceChoice& device, bool utf8);

// "[0/4] Using device='cpu' with backend='DDP' + 'mpi' for distributed training."
std::string DeviceLine(const Job& job, const DeviceChoice& device, absl::string_view strategy);

// "['node7'][ 3/7] [pp:0/1][dp:1/3][tp:1/1]"; indexes are as wide as the last one of their axis.
std::string RankLine(absl::string_view host, const DeviceMesh& mesh);
// "[device='cpu'][rank=2/3][local_rank=2/3][node=0/0]": each with its last index.
std::string RankLine(const Job& job, const DeviceChoice& device);

// Whether output can have characters beyond ASCII: LC_ALL, LC_CTYPE and LANG, the first that is set, names
// UTF-8.
bool LocaleIsUtf8(const Lookup& lookup = ProcessEnvironment());

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_DIST_INFO_H_
