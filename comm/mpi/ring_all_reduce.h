// All-reduce in a ring: every rank reduces a part of the values, then the parts go round. Private to
// comm/mpi.
//
// Each of n ranks sends 2 (n - 1) / n of the values, the least possible (Patarasuk & Yuan, "Bandwidth optimal
// all-reduce algorithms for clusters of workstations", JPDC 69, 2009, section 3). A part is added up in one
// order and then copied, so all ranks get the same bits. It is made of messages between neighbours, whose
// copies MPI makes directly from one process's memory to the other's; its own
// non-blocking all-reduce goes through buffers (docs/decisions/007).
#ifndef PLAIT_COMM_MPI_RING_ALL_REDUCE_H_
#define PLAIT_COMM_MPI_RING_ALL_REDUCE_H_

#include <cstdint>

#include "comm/mpi/mpi_collectives.h"
#include "comm/mpi/mpi_work.h"
#include "comm/operation.h"

namespace plait::comm {

struct RingValues {
  void* data;
  std::int64_t count;  // at most 2^30
  DataType type;       // not half precision
};

// Adds to `work` all stages. `tag`: of this operation alone among those under way on group.comm.
void AddRingAllReduce(const MpiGroup& group, const RingValues& values, ReduceOp op, int tag, MpiWork* work);

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_RING_ALL_REDUCE_H_
