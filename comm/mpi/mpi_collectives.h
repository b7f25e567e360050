// One request as MPI calls: conversions, splitting of long messages, in-place forms. Private to comm/mpi.
#ifndef PLAIT_COMM_MPI_MPI_COLLECTIVES_H_
#define PLAIT_COMM_MPI_MPI_COLLECTIVES_H_

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/call_fingerprint.h"
#include "comm/mpi/mpi_work.h"
#include "comm/operation.h"

namespace plait::comm {

// Receives of a communicator that do not know their message yet, in the order of their start.
struct OpenReceive {
  int from, tag;
  const MpiWork* work;
};

struct MpiGroup {
  MPI_Comm comm;
  int rank;
  int size;
  std::int64_t max_elements;  // per message
  std::int64_t ring_bytes;    // see MpiOptions
  std::int64_t operation;     // counts the calls on this communicator, the same on all ranks
  std::shared_ptr<std::vector<OpenReceive>> open_receives;
};

// Longer messages of a ring are cut into pieces that Open MPI sends over TCP without asking the receiver first: below
// its eager limit, 64 KiB with its headers. See docs/decisions/013.
inline constexpr int kPieceBytes = 60 << 10;

// Above the tags of programs: one for the check between neighbours, and for each kind of message some, of which
// operations under way use different ones.
enum class MessageKind { kRing, kPart, kCheck };
inline constexpr int kNeighborCheckTag = 1 << 30;
int TagOf(MessageKind kind, const MpiGroup& group);

// Elements of all parts together.
std::int64_t WholeCount(const Request& request, int size);

// Whether `request` goes round a ring of messages.
bool GoesRound(const MpiGroup& group, const Request& request);
// Whether it is made of messages between pairs, each behind a header that says what comes.
bool GoesInPairs(const Request& request);
// Whether its messages are such short ones that MPI cuts them off where they do not fit.
bool IsShort(const MpiGroup& group, const Request& request);

// Starts `request`; a split is a barrier. `call`: of what goes round a ring, whose first messages carry it.
void IssueOperation(const MpiGroup& group, const Request& request, MpiWork* work,
                    const CallFingerprint& call = {});

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_MPI_COLLECTIVES_H_
