// Reduce-scatter, all-gather and all-reduce in a ring of messages between neighbours. Private to comm/mpi.
//
// Each of n ranks sends (n - 1) / n of the values in a reduce-scatter and in an all-gather, the least
// possible, and an all-reduce is one of each (Patarasuk & Yuan, "Bandwidth optimal all-reduce algorithms for
// clusters of workstations", JPDC 69, 2009, section 3). Part p is added up in one order, that of ranks p + 1,
// p + 2, ..., p, so all ranks get the same bits, every time; a mean is divided in the last addition. On one
// node MPI copies such messages directly from one process's memory to the other's; its own non-blocking
// collectives go through buffers (docs/decisions/007).
#ifndef PLAIT_COMM_MPI_RING_COLLECTIVES_H_
#define PLAIT_COMM_MPI_RING_COLLECTIVES_H_

#include <vector>

#include "comm/buffer.h"
#include "comm/call_fingerprint.h"
#include "comm/mpi/mpi_collectives.h"
#include "comm/mpi/mpi_work.h"
#include "comm/operation.h"

namespace plait::comm {

// Part i of `values` for each of `parts` ranks; the first ones are longer by one element where they do not
// divide.
std::vector<Buffer> PartsOf(Buffer values, int parts);

// These add all stages to `work`. Parts: one per rank. `call`: for the first ring of an operation, whose first message
// leaves now and carries it; null for a ring behind another one. Messages of a ring have kPieceBytes.

// out: the reduced part of this rank; it may be parts[rank]. The other parts are read only. Not half
// precision.
void AddRingReduceScatter(const MpiGroup& group, const std::vector<Buffer>& parts, Buffer out, ReduceOp op,
                          const CallFingerprint* call, MpiWork* work);
// Part `rank` is there when the stages begin; the others are received. Any type.
void AddRingAllGather(const MpiGroup& group, const std::vector<Buffer>& parts, const CallFingerprint* call,
                      MpiWork* work);

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_RING_COLLECTIVES_H_
