// The conformance suite on the ranks of this test. The backend comes from BackendUnderTest() (backend_under_test.h), so
// that one source serves host and device.
#include "comm/testing/conformance.h"

#include <gtest/gtest.h>

#include "comm/testing/backend_under_test.h"

namespace plait::comm::testing {
namespace {

const Communicator& Ranks() { return BackendUnderTest().communicator; }
Memory& Where() { return BackendUnderTest().memory; }

TEST(Conformance, AllReduce) { CheckAllReduce(Ranks(), Where()); }
TEST(Conformance, Reduce) { CheckReduce(Ranks(), Where()); }
TEST(Conformance, ReduceScatter) { CheckReduceScatter(Ranks(), Where()); }
TEST(Conformance, WrappingSums) { CheckWrappingSums(Ranks(), Where()); }
TEST(Conformance, Broadcast) { CheckBroadcast(Ranks(), Where()); }
TEST(Conformance, AllGather) { CheckAllGather(Ranks(), Where()); }
TEST(Conformance, Gather) { CheckGather(Ranks(), Where()); }
TEST(Conformance, Scatter) { CheckScatter(Ranks(), Where()); }
TEST(Conformance, AllToAll) { CheckAllToAll(Ranks(), Where()); }
TEST(Conformance, AllToAllV) { CheckAllToAllV(Ranks(), Where()); }
TEST(Conformance, SendReceive) { CheckSendReceive(Ranks(), Where()); }
TEST(Conformance, MessagesOfOneTag) { CheckMessagesOfOneTag(Ranks(), Where()); }
TEST(Conformance, Split) { CheckSplit(Ranks(), Where()); }
TEST(Conformance, OverlappingWork) { CheckOverlappingWork(Ranks(), Where()); }
TEST(Conformance, OrdersOfWaiting) { CheckOrdersOfWaiting(Ranks(), Where()); }
TEST(Conformance, BlockingBesideWork) { CheckBlockingBesideWork(Ranks(), Where()); }
TEST(Conformance, LongBuffers) { CheckLongBuffers(Ranks(), Where()); }
TEST(Conformance, Rounding) { CheckRounding(Ranks(), Where()); }

}  // namespace
}  // namespace plait::comm::testing
