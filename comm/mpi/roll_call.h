// The first exchange of a job, right after MPI_Init: every rank reports to rank 0. Private to comm.
#ifndef PLAIT_COMM_MPI_ROLL_CALL_H_
#define PLAIT_COMM_MPI_ROLL_CALL_H_

#include "absl/status/status.h"

namespace plait::comm {

// Collective over MPI_COMM_WORLD. UNAVAILABLE, on rank 0 only, if ranks have not reported in time; the message names
// them. The other ranks return once all have reported, else block forever: use a StepWatch.
absl::Status RollCall(double timeout_seconds);

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_ROLL_CALL_H_
