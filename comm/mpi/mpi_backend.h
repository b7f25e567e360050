// Communicators over MPI (host memory). Private to comm: programs get one from comm/session.h.
//
// Collectives between ranks of one node go through memory that they share, but for all_to_all_v
// (comm/mpi/shared_collective.h); between nodes, all-reduce, reduce-scatter and all-gather go round a ring of messages if
// they are long (comm/mpi/ring_collectives.h), all-to-alls are messages between pairs, and everything else goes through
// MPI's non-blocking calls.
//
// A blocking call starts the operation and waits for it, and whoever waits advances everything that the
// process has in flight (comm/mpi/progress.h). So ranks may wait in any order, on one node and between nodes.
// Nothing that selects a call of MPI differs between ranks. Every collective is checked against what the
// other ranks call (comm/call_fingerprint.h).
#ifndef PLAIT_COMM_MPI_MPI_BACKEND_H_
#define PLAIT_COMM_MPI_MPI_BACKEND_H_

#include <cstdint>
#include <memory>

#include "comm/backend.h"

namespace plait::comm {

struct MpiOptions {
  std::int64_t max_elements_per_message = std::int64_t{1} << 30;  // at most 2^30
  // As SessionOptions has them.
  std::int64_t shared_bytes_per_rank = std::int64_t{4} << 20;
  std::int64_t ring_bytes = std::int64_t{1} << 16;
  bool read_peers = true;
};

// Over MPI_COMM_WORLD, which must be initialised. Collective; where ranks bring different options, all take
// the least. Tags of Send and Receive are in [0, 2^30).
std::unique_ptr<Backend> MakeMpiWorldBackend(const MpiOptions& options);

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_MPI_BACKEND_H_
