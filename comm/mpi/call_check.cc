#include "comm/mpi/call_check.h"

#include "comm/mpi/mpi_types.h"

namespace plait::comm {

// In round k, a rank hears of the rank 2^k before it that this one agrees with the 2^k - 1 ranks before it.
void AddCallCheck(const MpiGroup& group, const CallFingerprint& call, CheckedRanks checked, MpiWork& work) {
  constexpr int kBytes = sizeof(CallFingerprint);
  auto* mine = new (work.AddScratch(kBytes)) CallFingerprint(call);
  auto* theirs = new (work.AddScratch(kBytes)) CallFingerprint();
  const int rank = group.rank, size = group.size;
  const auto exchange = [=, comm = group.comm](int distance, int tag, MpiWork& w) {
    const int after = (rank + distance) % size, before = (rank + size - distance) % size;
    CheckMpi(MPI_Irecv(theirs, kBytes, MPI_BYTE, before, tag, comm, w.AddRequest()), "MPI_Irecv");
    CheckMpi(MPI_Isend(mine, kBytes, MPI_BYTE, after, tag, comm, w.AddRequest()), "MPI_Isend");
  };
  // Messages of one tag between two ranks arrive in the order of the calls: one tag serves the first round of
  // all operations. Later rounds do not begin in that order.
  exchange(1, kNeighborCheckTag, work);
  const int reach = checked == CheckedRanks::kAll ? size : 2;
  for (int distance = 1; distance < reach; distance *= 2) {
    work.AddStage([=, tag = TagOf(MessageKind::kCheck, group)](MpiWork& w) {
      CheckSameCall(*mine, rank, *theirs, (rank + size - distance) % size);
      if (2 * distance < reach) exchange(2 * distance, tag, w);
    });
  }
}

}  // namespace plait::comm
