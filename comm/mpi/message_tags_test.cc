#include "comm/mpi/message_tags.h"

#include <gtest/gtest.h>

#include <set>

namespace plait::comm {
namespace {

// Open MPI's own transports, UCX, libfabric with many ranks, and the least that MPI promises.
TEST(InternalTags, LieBetweenThoseOfProgramsAndTheLargest) {
  for (const std::int64_t largest : {(1L << 31) - 1, (1L << 23) - 1, (1L << 19) - 1, 32767L}) {
    const InternalTags tags = InternalTagsUpTo(largest);
    EXPECT_GE(tags.neighbor_check, std::min(1L << 30, largest / 2)) << largest;
    EXPECT_EQ(tags.Of(MessageKind::kRing, 0), tags.neighbor_check + 1);
    EXPECT_LE(tags.Of(MessageKind::kCheck, tags.per_kind - 1), largest);
    std::set<int> different;
    for (const MessageKind kind : {MessageKind::kRing, MessageKind::kPart, MessageKind::kCheck}) {
      for (const std::int64_t operation : {std::int64_t{5}, std::int64_t{6}, tags.per_kind - 1}) {
        different.insert(tags.Of(kind, operation));
      }
    }
    EXPECT_EQ(different.size(), 9u) << largest;
  }
}

}  // namespace
}  // namespace plait::comm
