// The ranks that a test runs on (see mpi_cc_test.bzl):
//
//   TEST(Ring, Turns) {
//     const comm::Communicator& world = comm::testing::World();
//     ...
//   }
//
// A failure on any rank fails the test. Gather first, then ASSERT: if a rank leaves a test early, the others hang in
// their next collective.
#ifndef PLAIT_COMM_TESTING_WORLD_H_
#define PLAIT_COMM_TESTING_WORLD_H_

#include "comm/communicator.h"

namespace plait::comm::testing {

const Communicator& World();

}  // namespace plait::comm::testing

#endif  // PLAIT_COMM_TESTING_WORLD_H_
