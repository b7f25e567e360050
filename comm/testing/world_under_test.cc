#include "comm/testing/backend_under_test.h"
#include "comm/testing/world.h"

namespace plait::comm::testing {

const Subject& BackendUnderTest() {
  static const Subject subject{World(), HostMemory()};
  return subject;
}

}  // namespace plait::comm::testing
