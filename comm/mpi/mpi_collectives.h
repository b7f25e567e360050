// One request as MPI calls: conversions, splitting of long messages, in-place forms. Private to comm/mpi.
#ifndef PLAIT_COMM_MPI_MPI_COLLECTIVES_H_
#define PLAIT_COMM_MPI_MPI_COLLECTIVES_H_

#include <mpi.h>

#include <cstdint>

#include "comm/mpi/mpi_work.h"
#include "comm/operation.h"

namespace plait::comm {

struct MpiGroup {
  MPI_Comm comm;
  int rank;
  int size;
  std::int64_t max_elements;  // per message
  std::int64_t ring_bytes;    // see MpiOptions
  std::int64_t operation;     // counts the calls on this communicator, the same on all ranks
};

// Tags from here on are not used for messages of operations.
inline constexpr int kFirstFreeTag = (1 << 30) + 1 + (1 << 20);

// Whether `request` goes round a ring of messages.
bool GoesRound(const MpiGroup& group, const Request& request);

// Starts `request`; a split is a barrier.
void IssueOperation(const MpiGroup& group, const Request& request, MpiWork* work);

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_MPI_COLLECTIVES_H_
