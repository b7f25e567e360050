#include "comm/testing/backend_under_test.h"

namespace plait::comm::testing {

const Subject& BackendUnderTest() {
  static const Subject subject{Communicator::Self(), HostMemory()};
  return subject;
}

}  // namespace plait::comm::testing
