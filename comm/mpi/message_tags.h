// The tags of the transport's own messages: the highest ones that this MPI has, above those of programs. Private to
// comm/mpi.
#ifndef PLAIT_COMM_MPI_MESSAGE_TAGS_H_
#define PLAIT_COMM_MPI_MESSAGE_TAGS_H_

#include <algorithm>
#include <cstdint>

namespace plait::comm {

// One tag for the check between neighbours, and a range for each kind of message, so that concurrent operations use
// different ones.
enum class MessageKind { kRing, kPart, kCheck };

struct InternalTags {
  std::int64_t neighbor_check = std::int64_t{1} << 30;  // programs use those below
  std::int64_t per_kind = 1 << 20;

  int Of(MessageKind kind, std::int64_t operation) const {
    return static_cast<int>(neighbor_check + 1 + static_cast<int>(kind) * per_kind + operation % per_kind);
  }
};

// `largest`: MPI_TAG_UB. It is 2^31 - 1 for Open MPI's own transports, but 2^23 - 1 with UCX (InfiniBand).
inline InternalTags InternalTagsUpTo(std::int64_t largest) {
  const std::int64_t per_kind = std::clamp<std::int64_t>(largest / 8, 1, 1 << 20);
  return {.neighbor_check = std::min(std::int64_t{1} << 30, largest - 3 * per_kind), .per_kind = per_kind};
}

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_MESSAGE_TAGS_H_
