#include "comm/mpi/call_check.h"

#include <cstring>

#include "comm/mpi/mpi_types.h"

namespace plait::comm {
namespace {

constexpr int kBytes = sizeof(CallFingerprint);

// Starts the exchange between neighbours. Returns where the neighbour's call, followed by its values, will be stored.
//
// Messages with the same tag between two ranks arrive in the order of the calls, so one tag serves all operations. A
// rank cannot know what its neighbour calls, so the receive buffer fits the longest message with this tag.
const CallFingerprint* ExchangeWithNeighbors(const MpiGroup& group, const CallFingerprint& call,
                                             ConstBuffer values, MpiWork& work) {
  constexpr int kLongest = kBytes + kPieceBytes;
  const int check_tag = static_cast<int>(group.tags.neighbor_check);
  const int rank = group.rank, size = group.size, length = kBytes + static_cast<int>(values.bytes());
  auto* theirs = new (work.AddScratch(kLongest)) CallFingerprint();
  auto* mine = new (work.AddScratch(length)) CallFingerprint(call);
  if (values.count > 0) std::memcpy(mine + 1, values.data, values.bytes());
  CheckMpi(MPI_Irecv(theirs, kLongest, MPI_BYTE, (rank + size - 1) % size, check_tag, group.comm,
                     work.AddRequest()),
           "MPI_Irecv");
  CheckMpi(MPI_Isend(mine, length, MPI_BYTE, (rank + 1) % size, check_tag, group.comm, work.AddLateRequest()),
           "MPI_Isend");
  return theirs;
}

}  // namespace

// In round k, the rank 2^k before this one confirms that it agrees with the 2^k - 1 ranks before itself.
void AddCallCheck(const MpiGroup& group, const CallFingerprint& call, CheckedRanks checked, MpiWork& work) {
  const CallFingerprint* first = ExchangeWithNeighbors(group, call, /*values=*/{}, work);
  const int rank = group.rank, size = group.size;
  const int reach = checked == CheckedRanks::kAll ? size : 2;
  auto* mine = new (work.AddScratch(kBytes)) CallFingerprint(call);
  auto* next = new (work.AddScratch(kBytes)) CallFingerprint();
  for (int distance = 1; distance < reach; distance *= 2) {
    // Later rounds do not start in the order of the calls, so they need a tag per operation.
    work.AddStage([=, comm = group.comm, tag = TagOf(MessageKind::kCheck, group)](MpiWork& w) {
      CheckSameCall(*mine, rank, distance == 1 ? *first : *next, (rank + size - distance) % size);
      if (2 * distance >= reach) return;
      const int after = (rank + 2 * distance) % size, before = (rank + size - 2 * distance) % size;
      CheckMpi(MPI_Irecv(next, kBytes, MPI_BYTE, before, tag, comm, w.AddRequest()), "MPI_Irecv");
      CheckMpi(MPI_Isend(mine, kBytes, MPI_BYTE, after, tag, comm, w.AddRequest()), "MPI_Isend");
    });
  }
}

void AddCallCheckWithValues(const MpiGroup& group, const CallFingerprint& call, ConstBuffer sent,
                            Buffer received, MpiWork& work) {
  const CallFingerprint* theirs = ExchangeWithNeighbors(group, call, sent, work);
  work.AddStage([=, rank = group.rank, before = (group.rank + group.size - 1) % group.size](MpiWork&) {
    CheckSameCall(call, rank, *theirs, before);
    if (received.count > 0) std::memcpy(received.data, theirs + 1, received.bytes());
  });
}

}  // namespace plait::comm
