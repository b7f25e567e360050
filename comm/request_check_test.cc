// Invalid calls abort with a message.
#include "comm/request_check.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/types/span.h"
#include "comm/communicator.h"
#include "comm/transport_error.h"

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
  EXPECT_DEATH(self.AllReduce(BufferOf(absl::MakeSpan(ints)), ReduceOp::kAverage), "floating-point type");
  EXPECT_DEATH(self.Send(ConstBufferOf(absl::MakeConstSpan(three)), 0, -1), "tag is not in");
  EXPECT_DEATH(self.Receive(a, 0, 1 << 30), "tag is not in");
  EXPECT_DEATH(self.AllToAll(a, {three.data() + 1, 3, DataType::kFloat32}), "overlap");
  EXPECT_DEATH(self.AllToAllV(a, {3}, BufferOf(absl::MakeSpan(four)), {4}), "sends to itself differ");
  EXPECT_DEATH({ Work dropped = self.AllReduceAsync(a); }, "dropped before it was complete");
}

// As many bytes, and not the same numbers. (Between ranks: comm/testing/mismatch_test.sh.)
TEST(Communicator, AMessageToItselfOfAnotherTypeIsNamed) {
  const Communicator self = Communicator::Self();
  std::vector<float> sent(2);
  std::vector<std::int64_t> received(1);
  self.Send(ConstBufferOf(absl::MakeConstSpan(sent)), 0, 5);
  try {
    self.Receive(BufferOf(absl::MakeSpan(received)), 0, 5);
    ADD_FAILURE() << "received " << received[0];
  } catch (const TransportError& error) {
    EXPECT_STREQ(error.what(), "receive from rank 0 of the group: f32[2] was sent, i64[1] was expected");
  }
}

}  // namespace
}  // namespace plait::comm
