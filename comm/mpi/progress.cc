#include "comm/mpi/progress.h"

#include <mpi.h>

#include "comm/mpi/backoff.h"
#include "comm/mpi/mpi_types.h"

namespace plait::comm {
namespace {

// MPI progresses its own messages inside any MPI call.
void LetMpiMove() {
  int found = 0;
  CheckMpi(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE), "MPI_Iprobe");
}

}  // namespace

bool Progress::AdvanceAll() {
  bool moved = false;
  for (Task* task : under_way_) moved |= task->Advance();
  if (moved) std::erase_if(under_way_, [](const Task* task) { return task->complete(); });
  return moved;
}

void Progress::Poll() {
  AdvanceAll();
  LetMpiMove();
}

void Progress::WaitFor(const Task& task) {
  constexpr int kPollsPerMpiCall = 16;  // polls of shared memory take some nanoseconds, calls of MPI hundreds
  Backoff backoff(oversubscribed_);
  for (int polls = 1; !task.complete(); ++polls) {
    if (AdvanceAll()) {
      backoff = Backoff(oversubscribed_);
    } else {
      if (oversubscribed_ || polls % kPollsPerMpiCall == 0) LetMpiMove();
      backoff.Pause();
    }
  }
}

}  // namespace plait::comm
