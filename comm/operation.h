// One call on a communicator, as data: what the backends execute and the flight recorder notes.
#ifndef PLAIT_COMM_OPERATION_H_
#define PLAIT_COMM_OPERATION_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "comm/buffer.h"

namespace plait::comm {

// kAverage divides the sum by the number of ranks; floating-point types only. bf16 and f16 are reduced in float32
// and rounded once. u8 sums wrap modulo 256. For bool, sum and max are logical or, product and min logical and. kMin and
// kMax may return a number where a rank gave NaN.
enum class ReduceOp : std::uint8_t { kSum, kProduct, kMin, kMax, kAverage };

enum class Operation : std::uint8_t {
  kAllReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kAllToAllV,
  kReduce,
  kGather,
  kScatter,
  kBarrier,
  kSplit,
  kSend,
  kReceive
};
inline constexpr int kOperations = 13;

absl::string_view Name(Operation operation);  // "all_reduce", "reduce_scatter", ...
absl::string_view Name(ReduceOp op);          // "sum", "average", ...
inline bool IsPointToPoint(Operation o) { return o == Operation::kSend || o == Operation::kReceive; }
inline bool IsReduction(Operation o) {
  return o == Operation::kAllReduce || o == Operation::kReduceScatter || o == Operation::kReduce;
}

inline constexpr int kNoTag = -1;

// Fields that an operation does not use keep their defaults. AllReduce and Broadcast use `out` alone.
struct Request {
  Operation operation = Operation::kBarrier;
  ConstBuffer in = {};
  Buffer out = {};
  ReduceOp reduce = ReduceOp::kSum;
  int root = -1;     // for Send and Receive the peer
  int tag = kNoTag;  // of a message; of a collective: identifies its data, compared between ranks
  std::vector<std::int64_t> send_counts = {};
  std::vector<std::int64_t> receive_counts = {};
};

// The buffer whose size reports show and Stats count as payload: `out` of all-reduce, broadcast, receive and scatter,
// `in` of everything else.
ConstBuffer Payload(const Request& request);

// Bytes that the rank sends under the bandwidth-optimal algorithm: all-reduce 2 P (N-1)/N, reduce-scatter and
// all-to-all P (N-1)/N, all_to_all_v all but its own part, all-gather (N-1) p, broadcast P (N-1)/N (scatter, then
// ring all-gather), reduce P and gather p from all but the root, scatter (N-1) p from the root, send P unless to
// itself. P: bytes of the whole buffer, p: of this rank's part. Half-precision reductions count as float32.
std::int64_t WireBytes(const Request& request, int rank, int size);

}  // namespace plait::comm

#endif  // PLAIT_COMM_OPERATION_H_
