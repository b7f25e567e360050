// All-reduce in a ring: every rank reduces a part of the values, then the parts go round. Private to
// comm/mpi.
//
// Each of n ranks sends 2 (n - 1) / n of the values, the least possible (Patarasuk & Yuan, "Bandwidth optimal
// all-reduce algorithms for clusters of workstations", JPDC 69, 2009, section 3). A part is added up in one
// order and then copied, so all ranks get the same bits. It is made of messages between neighbours, whose
// copies MPI makes directly from one process's memory to the other's; its own non-blocking all-reduce takes
// two to three times as long for a megabyte on one node.
#ifndef PLAIT_COMM_MPI_RING_ALL_REDUCE_H_
#define PLAIT_COMM_MPI_RING_ALL_REDUCE_H_

#include <cstdint>

#include "comm/mpi/mpi_collectives.h"
#include "comm/mpi/mpi_work.h"

namespace plait::comm {

// Adds to `work` all stages for `count` elements at `data`, at most 2^30. `tag`: of this operation alone
// among those under way on group.comm. `part_is_reduced(begin, count)` is called on the one part that is
// complete on this rank before it goes round: for the division of a mean.
struct RingPart {
  void* data;
  std::int64_t count;
};
void AddRingAllReduce(const MpiGroup& group, void* data, std::int64_t count, MPI_Datatype type,
                      std::int64_t element_bytes, MPI_Op op, int tag,
                      std::function<void(const RingPart&)> part_is_reduced, MpiWork* work);

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_RING_ALL_REDUCE_H_
