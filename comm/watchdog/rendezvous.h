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

// Collective. On rank 0 one peer per rank, its own entry without a link; elsewhere the entry of rank 0 alone.
// UNAVAILABLE, on all ranks, if one cannot reach rank 0.
absl::StatusOr<std::vector<Peer>> Meet(const Communicator& world, double timeout_seconds);

std::string HostName();

}  // namespace plait::comm

#endif  // PLAIT_COMM_WATCHDOG_RENDEZVOUS_H_
