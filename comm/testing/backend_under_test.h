// Which communicator a conformance test exercises; each backend's test defines it.
#ifndef PLAIT_COMM_TESTING_BACKEND_UNDER_TEST_H_
#define PLAIT_COMM_TESTING_BACKEND_UNDER_TEST_H_

#include "comm/communicator.h"
#include "comm/testing/conformance.h"

namespace plait::comm::testing {

struct Subject {
  Communicator communicator;
  Memory& memory;
};
const Subject& BackendUnderTest();

}  // namespace plait::comm::testing

#endif  // PLAIT_COMM_TESTING_BACKEND_UNDER_TEST_H_
