// Communicators over MPI (host memory). Private to comm: programs get one from comm/session.h.
//
// All-reduce, reduce-scatter, all-gather and barrier between ranks of one node go through memory that they
// share (comm/mpi/shared_collective.h; all-gathers that block only if oversubscribed); between nodes, the
// non-blocking ones of the first three go round a ring of messages if they are long
// (comm/mpi/ring_collectives.h).
//
// Other blocking calls map to MPI's blocking collectives. Where a node has more ranks than cores they start
// the non-blocking one and wait for it with comm/mpi/backoff.h, so that waiting leaves the cores to the
// others.
#ifndef PLAIT_COMM_MPI_MPI_BACKEND_H_
#define PLAIT_COMM_MPI_MPI_BACKEND_H_

#include <cstdint>
#include <memory>

#include "comm/backend.h"

namespace plait::comm {

struct MpiOptions {
  std::int64_t max_elements_per_message = std::int64_t{1} << 30;  // at most 2^30
  bool oversubscribed = false;                                    // more ranks than cores on this node
  // As SessionOptions has them.
  std::int64_t shared_bytes_per_rank = std::int64_t{4} << 20;
  std::int64_t ring_bytes = std::int64_t{1} << 16;
};

// Over MPI_COMM_WORLD, which must be initialised. Tags of Send and Receive are in [0, 2^30).
std::unique_ptr<Backend> MakeMpiWorldBackend(const MpiOptions& options);

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_MPI_BACKEND_H_
