// Ring reduce-scatter, all-gather and all-reduce: messages between neighbours. Private to comm/mpi.
//
// Each of n ranks sends (n - 1) / n of the values in a reduce-scatter and in an all-gather, which is optimal, and an
// all-reduce is one of each (Patarasuk & Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
// JPDC 69, 2009, section 3). Part p is always summed in the order of ranks p + 1, p + 2, ..., p, so results are bitwise
// identical on all ranks and in every run; an average is divided in the last addition. On one node MPI copies such
// messages directly from process to process, while its own non-blocking collectives use intermediate buffers
// (docs/decisions/007).
#ifndef PLAIT_COMM_MPI_RING_COLLECTIVES_H_
#define PLAIT_COMM_MPI_RING_COLLECTIVES_H_

#include <vector>

#include "comm/buffer.h"
#include "comm/call_fingerprint.h"
#include "comm/mpi/mpi_collectives.h"
#include "comm/mpi/mpi_work.h"
#include "comm/operation.h"

namespace plait::comm {

// `values` divided into `parts` parts; the first count % parts of them are longer by one element.
std::vector<Buffer> PartsOf(Buffer values, int parts);

// Both add all stages to `work`. `parts`: one per rank. `call`: for the first ring of an operation, the fingerprint,
// which is sent at once with the first piece; null for a ring that follows another one. Messages are at most
// kPieceBytes long.

// `out`: the reduced part of this rank; may be parts[rank]. The other parts are only read. Not for half precision.
void AddRingReduceScatter(const MpiGroup& group, const std::vector<Buffer>& parts, Buffer out, ReduceOp op,
                          const CallFingerprint* call, MpiWork* work);
// parts[rank] must be complete when the stages start; the others are received. Any type.
void AddRingAllGather(const MpiGroup& group, const std::vector<Buffer>& parts, const CallFingerprint* call,
                      MpiWork* work);

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_RING_COLLECTIVES_H_
