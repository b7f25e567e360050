// Communicators over MPI (host memory). Private to comm: programs get one from comm/session.h.
//
// Collectives between ranks of one node use shared memory, except for all_to_all_v (comm/mpi/shared_collective.h).
// Between nodes, long all-reduces, reduce-scatters and all-gathers use a ring of messages
// (comm/mpi/ring_collectives.h), all-to-alls are point-to-point messages, and everything else uses MPI's non-blocking
// collectives.
//
// A blocking call starts the operation and waits for it, and every wait advances all operations of the session that
// are in flight (comm/mpi/progress.h). So ranks may wait in any order, on one node and between nodes. The choice of
// algorithm never depends on anything that differs between ranks. Every collective is checked against the calls of the
// other ranks (comm/call_fingerprint.h).
#ifndef PLAIT_COMM_MPI_MPI_BACKEND_H_
#define PLAIT_COMM_MPI_MPI_BACKEND_H_

#include <cstdint>
#include <memory>

#include "comm/backend.h"

namespace plait::comm {

struct MpiOptions {
  std::int64_t max_elements_per_message = std::int64_t{1} << 30;  // at most 2^30
  // As in SessionOptions.
  std::int64_t shared_bytes_per_rank = std::int64_t{4} << 20;
  std::int64_t ring_bytes = std::int64_t{1} << 16;
  bool read_peers = true;
};

// The backend of MPI_COMM_WORLD; MPI must be initialised. Collective; if ranks pass different options, all use the
// least of each. Throws TransportError. Tags of Send and Receive must be in [0, 2^30), or below 5/8 of MPI_TAG_UB where
// that is less; larger ones are used internally.
std::unique_ptr<Backend> MakeMpiWorldBackend(const MpiOptions& options);

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_MPI_BACKEND_H_
