// Translates a request into MPI calls: conversions, splitting of long messages, in-place forms. Private to comm/mpi.
#ifndef PLAIT_COMM_MPI_MPI_COLLECTIVES_H_
#define PLAIT_COMM_MPI_MPI_COLLECTIVES_H_

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/call_fingerprint.h"
#include "comm/mpi/message_tags.h"
#include "comm/mpi/mpi_work.h"
#include "comm/operation.h"

namespace plait::comm {

// Receives of a communicator that have not been matched with a message yet, in the order of their start.
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
  InternalTags tags;
};

inline int TagOf(MessageKind kind, const MpiGroup& group) { return group.tags.Of(kind, group.operation); }

// Longer messages of a ring are cut into pieces that Open MPI sends over TCP without asking the receiver first: below
// its eager limit, 64 KiB with its headers. See docs/decisions/013.
inline constexpr int kPieceBytes = 60 << 10;

// Number of elements of all parts together.
std::int64_t WholeCount(const Request& request, int size);

// Whether `request` uses a ring of messages.
bool GoesRound(const MpiGroup& group, const Request& request);
// Whether it uses point-to-point messages, each preceded by a header with its type and count.
bool GoesInPairs(const Request& request);
// Whether its messages are so short that MPI truncates them safely if they do not fit into the receive buffer.
bool IsShort(const MpiGroup& group, const Request& request);

// Starts `request`; a split is a barrier. `call`: for ring collectives, the fingerprint that the first messages carry.
void IssueOperation(const MpiGroup& group, const Request& request, MpiWork* work,
                    const CallFingerprint& call = {});

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_MPI_COLLECTIVES_H_
