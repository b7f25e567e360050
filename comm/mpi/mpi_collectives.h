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

enum class Mode { kBlocking, kImmediate };

// In blocking mode the calls have returned when this does, and work->Wait() has only the last conversions
// left.
void IssueOperation(const MpiGroup& group, const Request& request, Mode mode, MpiWork* work);

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_MPI_COLLECTIVES_H_
