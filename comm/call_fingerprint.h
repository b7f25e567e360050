// The properties of a collective call that must be equal on all ranks of the group. Each rank sends its fingerprint
// along with the collective, so that mismatched calls are reported instead of computing wrong results.
#ifndef PLAIT_COMM_CALL_FINGERPRINT_H_
#define PLAIT_COMM_CALL_FINGERPRINT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "comm/operation.h"

namespace plait::comm {

// Sent as bytes between processes of one program.
struct CallFingerprint {
  std::int64_t sequence = 0;  // counts the collectives of the group
  std::int64_t count = 0;     // of the payload; 0 where ranks may differ (all_to_all_v)
  std::int32_t root = -1;
  std::int32_t tag = kNoTag;  // calls of the same shape on different data
  Operation operation = Operation::kBarrier;
  ReduceOp reduce = ReduceOp::kSum;
  DataType type = DataType::kUInt8;
  std::uint8_t unused = 0;

  bool operator==(const CallFingerprint&) const = default;
};

// Of a collective.
CallFingerprint FingerprintOf(const Request& request, std::int64_t sequence);

// "#12 all_reduce[tp] f32[180736] max"; without brackets if `group` is empty. With " tag 3" where it has one.
std::string Describe(const CallFingerprint& call, absl::string_view group);

// Throws TransportError if two ranks of a group differ.
void CheckSameCall(const CallFingerprint& mine, int my_rank, const CallFingerprint& theirs, int their_rank);

// The properties of a message that must be equal on sender and receiver. Sent as bytes.
struct MessageHeader {
  std::int64_t count = 0;
  DataType type = DataType::kUInt8;
  bool operator==(const MessageHeader&) const = default;
};

// Throws TransportError if rank `from` of the group sent another type or another number of elements.
void CheckSameMessage(const MessageHeader& sent, int from, const MessageHeader& expected);

}  // namespace plait::comm

#endif  // PLAIT_COMM_CALL_FINGERPRINT_H_
