// Algorithm and bus bandwidth as nccl-tests defines them (doc/PERFORMANCE.md of github.com/NVIDIA/nccl-tests), so that
// numbers can be compared with its own.
//
// S: bytes, the size of a row. n: ranks of the group. t: seconds.
//   algorithm bandwidth = S / t
//   bus bandwidth       = S / t * factor: what a link must carry, the same for any n on a perfect ring
//
//   operation        S is                                       factor
//   all_reduce       the buffer of a rank                       2 (n-1)/n
//   reduce           the buffer of a rank                       1
//   broadcast        the buffer                                 1
//   all_gather       what a rank ends with: n parts             (n-1)/n
//   reduce_scatter   what a rank begins with: n parts           (n-1)/n
//   all_to_all       what a rank begins with: n parts           (n-1)/n
//   gather           what the root ends with: n parts           (n-1)/n
//   scatter          what the root begins with: n parts         (n-1)/n
//   send_recv        what a rank sends to the next one          1
//   barrier          nothing                                    -
#ifndef PLAIT_TOOLS_COLLECTIVES_SWEEP_BANDWIDTH_H_
#define PLAIT_TOOLS_COLLECTIVES_SWEEP_BANDWIDTH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace plait::collectives_sweep {

enum class Swept {
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kGather,
  kScatter,
  kSendRecv,
  kBarrier
};
inline constexpr int kSweptOperations = 10;

absl::string_view Name(Swept operation);  // "all_reduce", ..., "send_recv", "barrier"
std::vector<Swept> AllSwept();

// The buffer consists of one part per rank.
bool HasParts(Swept operation);
bool Reduces(Swept operation);
bool HasRoot(Swept operation);

double BusFactor(Swept operation, int ranks);

// The size that is sent for a requested one: whole elements, at least one (of each part); {0, 0} for the barrier.
struct MessageSize {
  std::int64_t bytes = 0;  // S
  std::int64_t count = 0;  // elements in nccl-tests' column of that name: of a part where there are parts
};
MessageSize SizeOf(Swept operation, std::int64_t bytes, std::int64_t element_bytes, int ranks);

// `smallest`, times `factor` each, up to and including `largest`.
std::vector<std::int64_t> Sizes(std::int64_t smallest, std::int64_t largest, int factor);

}  // namespace plait::collectives_sweep

#endif  // PLAIT_TOOLS_COLLECTIVES_SWEEP_BANDWIDTH_H_
