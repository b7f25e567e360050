// What the ranks of a job find out together, once they can talk: who really shares a host with whom, and
// whether all run the same program.
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
// - rank, size, local_rank, local_size, node_id and hosts are those of `world`: hosts are in the order of
//   their lowest ranks, slots are their numbers of ranks;
// - launch_command is the lowest rank's that found one;
// - contradictions are those of all ranks ("ranks 2-3: ..." where not all have them), then what the
//   environment said and `world` says otherwise, different hosts of the same name, and ranks whose
//   `fingerprint` is not that of most ranks. The same list on every rank.
void CompleteJob(const Communicator& world, absl::string_view fingerprint, Job* job);

// Names a build: `revision` with a checksum of this program's file, so that two builds of one revision differ
// too. "unreadable" stands for a file that cannot be read.
std::string BuildFingerprint(absl::string_view revision);

// One line that names the ranks whose fingerprint is not the most frequent one (of equally frequent ones, the
// lowest rank's); empty if all are the same. `hosts` by rank.
std::string OddBuilds(const std::vector<std::string>& fingerprints, const std::vector<std::string>& hosts);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_JOB_ON_RANKS_H_
