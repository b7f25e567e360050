// Calls that cannot be right end the process, and say why.
#include "comm/request_check.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/types/span.h"
#include "comm/communicator.h"

namespace plait::comm {
namespace {

TEST(CommunicatorDeathTest, MistakesEndTheProcess) {
  const Communicator self = Communicator::Self();
  std::vector<float> three(3), four(4);
  std::vector<std::int32_t> ints(3);
  const Buffer a = BufferOf(absl::MakeSpan(three));
  EXPECT_DEATH(self.Broadcast(a, 1), "not a rank of the group");
  EXPECT_DEATH(self.AllGather(a, BufferOf(absl::MakeSpan(four))), "one part per rank");
  EXPECT_DEATH(self.AllGather(a, BufferOf(absl::MakeSpan(ints))), "different types");
  EXPECT_DEATH(self.AllReduce(BufferOf(absl::MakeSpan(ints)), ReduceOp::kAverage), "floating types");
  EXPECT_DEATH(self.AllToAll(a, {three.data() + 1, 3, DataType::kFloat32}), "overlap");
  EXPECT_DEATH({ Work dropped = self.AllReduceAsync(a); }, "dropped before it was complete");
}

}  // namespace
}  // namespace plait::comm
