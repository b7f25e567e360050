// How the watchdogs connect: rank 0 listens and broadcasts its address over `world`, and the others connect by TCP.
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
  std::vector<Peer> peers;  // on rank 0 one per rank, its own without a link; elsewhere only rank 0
  // The rank that reports the loss of rank 0: the first one on another node, which survives the loss of rank 0's node;
  // rank 1 if there is only one node.
  int deputy = 1;
};

// Collective. UNAVAILABLE, on all ranks, if one cannot reach rank 0 or rank 0 cannot open a port.
absl::StatusOr<Meeting> Meet(const Communicator& world, double timeout_seconds);

}  // namespace plait::comm

#endif  // PLAIT_COMM_WATCHDOG_RENDEZVOUS_H_
