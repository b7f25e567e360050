// The first exchange of a job, right behind MPI_Init: every rank reports to rank 0. Private to comm.
#ifndef PLAIT_COMM_MPI_ROLL_CALL_H_
#define PLAIT_COMM_MPI_ROLL_CALL_H_

#include "absl/status/status.h"

namespace plait::comm {

// Collective over MPI_COMM_WORLD. UNAVAILABLE, on rank 0 alone, if a rank has not reported in time; the
// message names it. The other ranks return when rank 0 has heard of all, or never: see StepWatch.
absl::Status RollCall(double timeout_seconds);

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_ROLL_CALL_H_
