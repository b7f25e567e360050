#include "comm/mpi/call_check.h"

#include "comm/mpi/mpi_collectives.h"
#include "comm/mpi/mpi_types.h"

namespace plait::comm {

// Messages of one tag between two ranks arrive in the order of the calls: one tag serves all operations.
void AddCallCheck(MPI_Comm comm, int rank, int size, const CallFingerprint& call, MpiWork& work) {
  constexpr int kBytes = sizeof(CallFingerprint);
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  auto* mine = new (work.AddScratch(kBytes)) CallFingerprint(call);
  auto* theirs = new (work.AddScratch(kBytes)) CallFingerprint();
  CheckMpi(MPI_Irecv(theirs, kBytes, MPI_BYTE, before, kFirstFreeTag, comm, work.AddRequest()), "MPI_Irecv");
  CheckMpi(MPI_Isend(mine, kBytes, MPI_BYTE, next, kFirstFreeTag, comm, work.AddRequest()), "MPI_Isend");
  work.AddStage([mine, theirs, rank, before](MpiWork&) { CheckSameCall(*mine, rank, *theirs, before); });
}

std::unique_ptr<PendingWork> StartCallCheck(MPI_Comm comm, int rank, int size, const CallFingerprint& call,
                                            std::shared_ptr<Progress> progress) {
  auto work = std::make_unique<MpiWork>(std::move(progress));
  AddCallCheck(comm, rank, size, call, *work);
  work->Start();  // a difference is seen in whatever the rank waits for
  return work;
}

}  // namespace plait::comm
