// What the ranks of a job can only determine together, once MPI has started: which ranks share a host, and whether all
// run the same build.
//
//   comm::Job job = comm::DetectJob();
//   comm::CompleteJob(session.world(), comm::BuildFingerprint(Revision()), &job);
//   if (session.world().rank() == 0) {
//     for (const std::string& line : job.contradictions) log.Warning(line);
//   }
#ifndef PLAIT_COMM_LAUNCH_JOB_ON_RANKS_H_
#define PLAIT_COMM_LAUNCH_JOB_ON_RANKS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "comm/communicator.h"
#include "comm/launch/job.h"

namespace plait::comm {

// Collective. On return, on every rank:
// - rank, size, local_rank, local_size, node_id and hosts are those of `world`: hosts in the order of their lowest
//   ranks, slots the number of ranks on each;
// - launch_command is that of the lowest rank that found one;
// - contradictions are those of all ranks ("ranks 2-3: ..." if not all have them), then disagreements between the
//   environment and `world`, different hosts of the same name, and ranks whose `fingerprint` differs from that of most
//   ranks. The list is the same on every rank.
void CompleteJob(const Communicator& world, absl::string_view fingerprint, Job* job);

// Identifies a build: `revision` and a checksum (FNV-1a) of the executable, so that two builds of one revision differ;
// "unreadable" instead of the checksum if it cannot be read. Local.
std::string BuildFingerprint(absl::string_view revision);

// One line that names up to eight ranks whose fingerprint is not the most frequent one (in a tie, the one of the lowest
// rank); empty if all are equal. Both arguments are by rank.
std::string OddBuilds(const std::vector<std::string>& fingerprints, const std::vector<std::string>& hosts);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_JOB_ON_RANKS_H_
