// How the watchdogs find each other: rank 0 listens, tells the others where (over the communicator that is
// there already), and they connect.
#ifndef PLAIT_COMM_WATCHDOG_RENDEZVOUS_H_
#define PLAIT_COMM_WATCHDOG_RENDEZVOUS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "comm/communicator.h"
#include "comm/watchdog/link.h"

namespace plait::comm {

struct Peer {
  std::string host;
  int pid = 0;
  Link link;
};

struct Meeting {
  std::vector<Peer> peers;  // on rank 0 one per rank, its own without a link; elsewhere that of rank 0 alone
  // The rank that reports the loss of rank 0: the first one on another node, which is not lost with rank 0's;
  // rank 1 where there is one node.
  int deputy = 1;
};

// Collective. UNAVAILABLE, on all ranks, if one cannot reach rank 0.
absl::StatusOr<Meeting> Meet(const Communicator& world, double timeout_seconds);

std::string HostName();

}  // namespace plait::comm

#endif  // PLAIT_COMM_WATCHDOG_RENDEZVOUS_H_
